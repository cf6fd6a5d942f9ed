"""Pausing the garbage collector while frames are read prevents a deadlock and a crash of CPython 3.11."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope.collector.worker.sampler import collection_paused, needs_pause

SCRIPT = Path(__file__).with_name("sampler_stress_script.py")


def stress(mode: str, seconds: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), mode, str(seconds)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_sampling_survives_short_lived_code_threads_and_collections() -> None:
    mode = "whole" if needs_pause(sys.version_info[:2]) else "bare"
    assert stress(mode, 5.0).stdout == "survived\n"


@pytest.mark.skipif(not needs_pause(sys.version_info[:2]), reason="this version of CPython is not affected")
def test_the_process_crashes_if_only_the_first_call_is_guarded() -> None:
    # Of a segmentation fault, usually within a second, or of what a frame that is gone looks like.
    assert any(stress("call", 6.0).returncode != 0 for _ in range(5))


@pytest.mark.skipif(not (3, 11) <= sys.version_info[:3] < (3, 11, 9), reason="this version of CPython is not affected")
def test_without_the_pause_it_deadlocks() -> None:
    # Usually within the first second; then the watchdog needs 8.
    assert any(stress("bare", 5.0).returncode == 1 for _ in range(3))


def test_the_collector_is_paused_on_affected_versions_only() -> None:
    versions = [(3, 10, 13), (3, 11, 0), (3, 11, 14), (3, 12, 0), (3, 13, 0)]
    assert [needs_pause(version) for version in versions] == [False, True, True, False, False]


def test_the_collector_is_on_again_after_the_pause() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
