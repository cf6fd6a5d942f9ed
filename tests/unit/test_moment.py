"""Moments in lists are those of the reader's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from daskscope.cli.moment import minute


@pytest.fixture
def nine_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("nine_hours_ahead")
def test_a_moment_is_told_in_local_time() -> None:
    assert minute("2026-05-01T20:03:59Z") == "2026-05-02 05:03"
    assert minute("2026-05-01T20:03:59.123456+00:00") == "2026-05-02 05:03"


def test_what_never_was_is_said_so() -> None:
    assert (minute(None), minute("", "never")) == ("", "never")
