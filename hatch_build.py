"""Packages carry the built viewer and app; whoever installs one needs no Node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Refuses to make a package without them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        package = Path(self.root, "src", "daskscope")
        for page in (package / "report" / "viewer.html", package / "server" / "static" / "team.html"):
            if version != "editable" and not page.exists():
                raise FileNotFoundError(f"{page} is missing. Run scripts/build-web, then build again.")
