"""Values of query parameters that several routes take."""

from __future__ import annotations

import subprocess
import sys

import pytest

from daskscope.server.errors import Refusal
from daskscope.server.http.parameters import since_us

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("1.5 h", 5_400), ("2h", 7_200), ("35 minutes", 2_100), ("7 days", 604_800), ("2W", 1_209_600),
        ("day", 86_400), ("500ms", 0.5), (" 1  day ", 86_400),
    ],
)  # fmt: skip
def test_since_is_a_duration_in_words_of_dask(text: str, seconds: float) -> None:
    assert since_us(text, NOW) == NOW - seconds * SECOND


@pytest.mark.parametrize("text", ["", "None", "all", "1e12 days", "9" * 300])
def test_since_may_be_all_history(text: str) -> None:
    assert since_us(text, NOW) == 0


def test_since_may_be_a_date() -> None:
    assert since_us("2026-05-14T00:00:00Z", NOW) == since_us("2026-05-14", NOW) == 1_778_716_800 * SECOND


@pytest.mark.parametrize("text", [" ", "+", "-5 days", "5 parsecs", "1e400 days", "9" * 400, "2026-13-45", "²"])
def test_another_since_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="neither a duration"):
        since_us(text, NOW)


def test_a_server_starts_without_dask() -> None:
    """Importing dask takes 0.15 to 0.3 s of CPU time and 12 MB of memory, and a server runs no tasks."""
    imports = (
        "import sys, daskscope.cli.main, daskscope.cli.serve, daskscope.server.run, daskscope.server.build_document"
    )
    script = f"{imports}; print({{'dask', 'distributed'}} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
