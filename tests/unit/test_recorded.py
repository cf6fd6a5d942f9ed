"""The users known to record a cluster are remembered for a while."""

from __future__ import annotations

from daskscope.server.caches import MAX_CLUSTERS, USERS_S, ClusterUsers


def test_a_user_is_known_for_the_clusters_they_record_until_the_entry_is_old() -> None:
    now = [0.0]
    recorded = ClusterUsers(lambda: now[0])
    recorded.add(1, "mia", "a")
    assert recorded.knows(1, "mia", {"a"})
    assert not recorded.knows(1, "mia", {"a", "b"})
    assert not recorded.knows(1, "max", {"a"})
    assert not recorded.knows(2, "mia", {"a"})
    now[0] = USERS_S
    assert not recorded.knows(1, "mia", {"a"})


def test_the_number_of_entries_is_limited() -> None:
    recorded = ClusterUsers(lambda: 0.0)
    for number in range(MAX_CLUSTERS + 1):
        recorded.add(1, "mia", str(number))
    assert not recorded.knows(1, "mia", {"0"})
    assert recorded.knows(1, "mia", {str(MAX_CLUSTERS)})
