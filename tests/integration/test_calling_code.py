"""The code of a computation is the user's line, not a line of a library that calls Dask for its users."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope.client import connection
from daskscope.client.connection import IGNORED, NFRAMES

LIBRARY = """
def compute_all(client, numbers):
    return _compute(client, numbers)


def _compute(client, numbers):
    return client.gather(client.map(abs, numbers, pure=False))
"""


@pytest.fixture
def library() -> Iterator[Any]:
    """A library that calls Dask, installed as ``coffea``. Not below pytest's directory, which Dask ignores."""
    with tempfile.TemporaryDirectory(prefix="library-") as directory, pytest.MonkeyPatch.context() as patch:
        package = Path(directory) / "site-packages" / "coffea"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(LIBRARY)
        patch.syspath_prepend(str(package.parent))
        yield importlib.import_module("coffea")
        del sys.modules["coffea"]


def the_line(path: Path) -> tuple[str, str]:
    """Return the calling line and the file of the only computation."""
    recording = daskscope.open_recording(path)
    ((code, line, file),) = set(recording["computations"].records("code", "code_line", "code_file"))
    return code.splitlines()[line].strip(), file


def test_frames_of_libraries_are_left_out(client: Any, library: Any, tmp_path: Path) -> None:
    before = list(dask.config.get(IGNORED))
    with daskscope.record(tmp_path / "run.daskscope", client):
        assert dask.config.get(NFRAMES) == 1
        library.compute_all(client, [1, 2])  # the user's line
    assert dask.config.get(IGNORED) == before

    assert the_line(tmp_path / "run.daskscope") == (
        "library.compute_all(client, [1, 2])  # the user's line",
        __file__,
    )


def test_the_users_frame_is_chosen_among_those_that_a_client_sends(
    client: Any, library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "module_patterns", list)
    with dask.config.set({NFRAMES: 3}), daskscope.record(tmp_path / "run.daskscope", client):
        library.compute_all(client, [1, 2])  # the user's line

    assert the_line(tmp_path / "run.daskscope")[1] == __file__


def test_a_setting_that_is_not_a_list_is_left_alone() -> None:
    code = connection.CallingCode()
    with dask.config.set({IGNORED: None, NFRAMES: 0}):
        code.acquire()
        assert (dask.config.get(IGNORED), dask.config.get(NFRAMES)) == (None, 1)
        code.release()
