"""Where the baselines of benchmarks are kept: in a directory, or on a server."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from daskscope.analysis.compare.measurements import Measured, measured_of
from daskscope.client.credentials import ENVIRONMENT
from daskscope.client.server import Server
from daskscope.errors import DaskscopeError, ServerError


class Baselines(Protocol):
    """Keeps the runs of tests under the name of a baseline."""

    def read(self, name: str, test: str) -> list[Measured] | None:
        """Return the runs of a baseline, or None before the first one is kept."""

    def write(self, name: str, test: str, runs: Sequence[Measured]) -> None:
        """Keep runs as a baseline, in place of an earlier one."""


@dataclass(frozen=True)
class LocalBaselines:
    """Baselines in files."""

    directory: Path

    def read(self, name: str, test: str) -> list[Measured] | None:
        path = self._path(name, test)
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise _unreadable(str(path), name, error) from None
        return _runs(data, str(path), name)

    def write(self, name: str, test: str, runs: Sequence[Measured]) -> None:
        path = self._path(name, test)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed, so that another process never reads a half of it.
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps({"test": runs[0].source, "runs": [run.to_dict() for run in runs]}) + "\n")
        part.replace(path)

    def _path(self, name: str, test: str) -> Path:
        return self.directory / name / f"{test}.json"


@dataclass(frozen=True)
class ServerBaselines:
    """Baselines of an account on a server."""

    server: Server

    def check(self, *, saves: bool) -> None:
        """Raise ``DaskscopeError`` if the server cannot be used: before the benchmarks run, not after."""
        try:
            allowed = self.server.get("me")["scopes"]
            needed = [scope for scope in ("read", *(["write"] if saves else [])) if scope not in allowed]
            if needed:
                raise ServerError(
                    f"This needs the scope {needed[0]}; yours allows {', '.join(allowed) or 'nothing'}.", 403
                )
            self.server.get("baselines", limit=1)
        except ServerError as error:
            raise self._refused(error) from None

    def read(self, name: str, test: str) -> list[Measured] | None:
        try:
            data = self.server.get(f"baselines/{name}/{test}")
        except ServerError as error:
            if error.status == 404:
                return None
            raise self._refused(error) from None
        return _runs(data, f"{name} on {self.server.url}", name)

    def write(self, name: str, test: str, runs: Sequence[Measured]) -> None:
        body = {"runs": [run.to_dict() for run in runs]}
        try:
            self.server.call("PUT", f"baselines/{name}/{test}", body=body)
        except ServerError as error:
            raise self._refused(error) from None

    def _refused(self, error: ServerError) -> DaskscopeError:
        """Return an error with the next step for somebody who runs benchmarks."""
        if error.status in (401, 403):
            hint = (
                f" For CI, create a token with daskscope token create --scope read --scope write, and set {ENVIRONMENT} to it "
                f"and DASK_DASKSCOPE__SERVER to {self.server.url}."
            )
        else:
            hint = " Record fewer repeats." if error.status == 413 and error.code == "too_large" else ""
        return DaskscopeError(f"{error}{hint}")


def _runs(data: Any, place: str, name: str) -> list[Measured]:
    """Return the runs of a stored baseline, which may contain anything."""
    try:
        runs = [measured_of(run) for run in data["runs"]]
        if not runs:
            raise ValueError("it has no runs")
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(place, name, error) from None
    return runs


def _unreadable(place: str, name: str, error: Exception) -> DaskscopeError:
    return DaskscopeError(
        f"The baseline {place} cannot be read ({error}). Keep a new one with --daskscope-save {name}."
    )
