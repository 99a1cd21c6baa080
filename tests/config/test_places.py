"""What the parts keep in the data folder never meets under one name."""

from __future__ import annotations

import ast

from tests.support.source_code import SRC, files_with, nodes


def test_no_two_parts_use_the_same_name_in_the_data_folder() -> None:
    names = [
        (str(node.right.value), str(file.relative_to(SRC)))
        for file in files_with("home")
        for node in nodes(file)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr in ("home", "_home")
        and isinstance(node.right, ast.Constant)
    ]
    used = [name for name, _ in names]
    assert len(used) > 3, "the test looks for a form that is still in use"
    doubled = {name: [file for each, file in names if each == name] for name in used}
    assert {name: files for name, files in doubled.items() if len(set(files)) > 1} == {}
