"""The build hook of wheels and source distributions: both carry the built page.

An editable install skips it: `make web` builds the page of a checkout.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _builder(root: Path) -> ModuleType:
    path = root / "scripts" / "build_page.py"
    spec = importlib.util.spec_from_file_location("build_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the page before it is packed."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node itself, where the machine has none and the page is not built."""
        builder = _builder(Path(self.root))
        return [] if self._is_skipped() or builder.node_commands() else [builder.NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it; a failure ends the build."""
        if version != "editable" and not self._is_skipped():
            _builder(Path(self.root)).build_page(Path(self.root), with_tools=False)

    def _is_skipped(self) -> bool:
        if os.environ.get("WEFT_WEB") == "skip":
            return True
        # A source distribution has the page, built from the sources beside it.
        stamp = Path(self.root) / "src" / "weft" / "web" / "page" / ".sources"
        builder = _builder(Path(self.root))
        web = Path(self.root) / "web"
        return stamp.is_file() and stamp.read_text() == builder.sources_hash(web)
