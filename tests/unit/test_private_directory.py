"""What is written where everybody can create files goes to a directory of our own, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.helpers.sealed import frame

from daskscope.collector.delivery.leftovers import leftovers
from daskscope.collector.delivery.private_directory import NotPrivate, check_private
from daskscope.collector.delivery.spool import Spool


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that everybody can write to, like the temp directory."""
    made = tmp_path / "shared"
    made.mkdir()
    made.chmod(0o1777)
    return made


def make_foreign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a directory of another user."""
    path.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(path, 12_345, 12_345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)


def test_an_own_directory_and_a_missing_one_are_accepted(shared: Path) -> None:
    check_private(shared / "missing" / "deeper")
    (shared / "own").mkdir()
    check_private(shared / "own")


@pytest.mark.parametrize("below", ["", "data"])
def test_the_directory_of_another_user_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    make_foreign(shared / "taken", monkeypatch)
    with pytest.raises(NotPrivate, match="taken belongs to another user, in a directory that everybody can write to"):
        check_private(shared / "taken" / below)


def test_a_link_is_refused(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (shared / "link").symlink_to(tmp_path / "target")
    with pytest.raises(NotPrivate, match="link is a link, in a directory that everybody can write to"):
        check_private(shared / "link")


def test_teams_may_share_a_directory_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_foreign(tmp_path / "team", monkeypatch)
    check_private(tmp_path / "team")


def test_a_spool_writes_and_reads_nothing_there(shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "target").mkdir()
    (shared / "spool").symlink_to(tmp_path / "target")
    spool = Spool(shared / "spool", "c-1", 1_000_000, destination="http://server")
    assert not spool.append([frame(0)])
    assert list((tmp_path / "target").iterdir()) == []
    assert "spool is a link" in caplog.text
    Spool(tmp_path / "target", "c-2", 1_000_000, destination="http://server").append([frame(0)])
    assert list(leftovers(shared / "spool", "http://server")) == []
