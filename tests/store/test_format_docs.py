"""What `docs/formats/store.md` says of versions is what the stores write."""

from __future__ import annotations

import re
from pathlib import Path

from weft.config.project_ids import KnownProject
from weft.store.jsonl.folder import VERSION as JSONL_VERSION
from weft.store.sqlite.schema import VERSION as SQLITE_VERSION

TEXT = (Path(__file__).parents[2] / "docs" / "formats" / "store.md").read_text()


def test_the_versions_are_those_that_are_written() -> None:
    assert re.findall(r"user_version`, now \*\*(\d+)\*\*", TEXT) == [str(SQLITE_VERSION)]
    assert re.findall(r'"weft_jsonl": (\d+)', TEXT) == [str(JSONL_VERSION)]


def test_every_field_of_a_known_project_is_described() -> None:
    section = TEXT[TEXT.index("## `projects/`") :]
    assert [name for name in KnownProject.__struct_fields__ if f"`{name}`" not in section] == []
