"""The guard around ``sys._current_frames`` prevents a real deadlock in CPython 3.11.0 to 3.11.8."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope.collector.worker.sampler import current_frames, guarded, needs_guard, unguarded

SCRIPT = Path(__file__).with_name("sampler_stress_script.py")


def stress(mode: str, seconds: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), mode, str(seconds)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_sampling_survives_short_lived_threads_and_collections() -> None:
    look = "guarded" if current_frames() is guarded else "bare"
    assert stress(look, 4.0).stdout == "survived\n"


@pytest.mark.skipif(not needs_guard(sys.version_info[:3]), reason="fixed in this version of CPython")
def test_without_the_guard_it_deadlocks() -> None:
    # Usually within the first second; then the watchdog needs 8.
    assert any(stress("bare", 5.0).returncode == 1 for _ in range(3))


def test_the_guard_is_used_only_on_affected_versions() -> None:
    versions = [(3, 10, 13), (3, 11, 0), (3, 11, 8), (3, 11, 9), (3, 12, 0), (3, 13, 0)]
    assert [needs_guard(version) for version in versions] == [False, True, True, False, False, False]


def test_the_guard_leaves_the_collector_on() -> None:
    assert gc.isenabled()
    guarded()
    assert gc.isenabled()


def test_the_guard_leaves_a_collector_off_that_was_off() -> None:
    gc.disable()
    try:
        guarded()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_guarded_and_unguarded_calls_see_the_same_threads() -> None:
    assert guarded().keys() == unguarded().keys()
