"""A recorder records until the last of those who claimed it lets go."""

from __future__ import annotations

from daskscope.collector.scheduler.claims import PRELOAD, RECORD, REGISTER, WATCH, Claim, Claims


def claimed(**claims: Claim) -> Claims:
    made = Claims()
    for owner, claim in claims.items():
        made.add(owner, claim)
    return made


def test_a_watcher_holds_a_cluster_that_nobody_records_for_long() -> None:
    claims = claimed(one=Claim(WATCH, "c1"), two=Claim(WATCH, "c2"), block=Claim(RECORD, "c3"))
    claims.release("one")
    assert claims.kinds() == [RECORD, WATCH]


def test_a_watcher_of_a_recorded_cluster_holds_nothing() -> None:
    for kind in (PRELOAD, REGISTER):
        claims = claimed(owner=Claim(kind, "c1"), watcher=Claim(WATCH, "c2"))
        assert claims.kinds() == [kind]
        claims.release("watcher")
        assert claims.kinds() == [kind]


def test_only_watchers_and_blocks_leave_with_their_client() -> None:
    claims = claimed(watcher=Claim(WATCH, "c"), block=Claim(RECORD, "c"), owner=Claim(REGISTER, "c"))
    assert claims.of_client("c") == ["watcher", "block"]
    assert claims.of_client("other") == []


def test_a_user_takes_back_the_registrations_of_clients_that_left_and_no_others() -> None:
    claims = claimed(
        left=Claim(REGISTER, "gone", "me"),
        connected=Claim(REGISTER, "here", "me"),
        other=Claim(REGISTER, "gone too", "you"),
        preload=Claim(PRELOAD),
    )
    claims.release_abandoned("me", {"here"})
    claims.release_abandoned("", {"here"})
    assert claims.kinds() == [PRELOAD, REGISTER, REGISTER]
    assert not claims.is_held_only_by("preload")
