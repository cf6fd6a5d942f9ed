"""Packages carry the built viewer; whoever installs one needs no Node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Refuses to make a package without the viewer."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        page = Path(self.root, "src", "daskscope", "report", "viewer.html")
        if version != "editable" and not page.exists():
            raise FileNotFoundError(f"{page} is missing. Run scripts/install and scripts/build-web, then build again.")
