"""A cluster is watched for a while after somebody asked for it, at this server or another."""

from __future__ import annotations

from daskscope.server import live
from daskscope.server.live import FORWARD_S, WATCHED_S, Watched


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_request_counts_for_a_while_and_for_one_account() -> None:
    clock = Clock()
    seen = Watched(clock)
    seen.note(1, "a")
    assert seen.has_any(1, {"a", "b"})
    assert not seen.has_any(1, {"b"})
    assert not seen.has_any(2, {"a"})
    clock.now += WATCHED_S
    assert not seen.has_any(1, {"a"})


def test_other_servers_are_notified_of_a_cluster_now_and_then() -> None:
    clock, sent = Clock(), list[tuple[int, str]]()
    seen = Watched(clock, lambda account, cluster: sent.append((account, cluster)))
    for _ in range(3):
        seen.note(1, "a")
    seen.note(1, "b")
    seen.heard(1, "c")
    assert sent == [(1, "a"), (1, "b")]
    clock.now += FORWARD_S
    seen.note(1, "a")
    assert sent[2:] == [(1, "a")]
    assert seen.has_any(1, {"c"})


def test_memory_is_bounded() -> None:
    clock = Clock()
    seen = Watched(clock)
    for number in range(live.MAX_WATCHED + 10):
        seen.note(1, str(number))
    assert len(seen._until) == live.MAX_WATCHED
    clock.now += WATCHED_S
    seen.note(1, "later")
    assert len(seen._until) == 1
