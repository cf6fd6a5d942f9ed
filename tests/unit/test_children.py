"""Child processes are counted, and may end at any time."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from daskscope.collector.worker.probes import ChildWatcher


def test_a_process_without_children_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert ChildWatcher(process.pid).sample() == {"children": 0, "children_cpu_percent": 0.0, "children_memory": 0}
    finally:
        process.communicate(b"\n")


def test_children_and_their_memory_are_counted() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        sample = ChildWatcher().sample()
        assert sample["children"] >= 1
        assert sample["children_memory"] > 0
    finally:
        process.communicate(b"\n")


def test_process_objects_are_reused() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        watcher = ChildWatcher()
        watcher.sample()
        before = dict(watcher._known)
        watcher.sample()
        assert all(watcher._known[identity] is child for identity, child in before.items() if child.pid == process.pid)
    finally:
        process.communicate(b"\n")


def test_a_child_that_vanishes_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        watcher = ChildWatcher()

        def gone(*args: object) -> None:
            raise psutil.NoSuchProcess(process.pid)

        monkeypatch.setattr(psutil.Process, "cpu_percent", gone)
        assert watcher.sample()["children"] == 0
    finally:
        process.communicate(b"\n")


def test_a_parent_that_is_gone_has_no_children() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watcher = ChildWatcher(process.pid)
    process.communicate(b"\n")
    assert watcher.sample()["children"] == 0
