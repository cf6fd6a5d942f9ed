"""Who holds the recorder of a scheduler: it records until the last claim is released.

A claim belongs to the one who asked to record: a preload, a client that registered, an open ``record()`` block, or a watcher of
a cluster that was not recorded. Nobody can release the claim of another, so one that leaves never ends the recording of others.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

#: Kinds of claims. The first two outlive their client: a preloaded cluster is recorded until it closes, a registered one until it
#: closes or ``unregister()``.
PRELOAD = "preload"
REGISTER = "register"
RECORD = "record"
WATCH = "watch"


@dataclass(frozen=True)
class Claim:
    """A claim on a recorder, its client, and a digest of the client's user."""

    kind: str
    client: str = ""
    user: str = ""

    @property
    def is_lasting(self) -> bool:
        return self.kind in (PRELOAD, REGISTER)


class Claims:
    """The claims on one recorder, by the name of their owner."""

    def __init__(self) -> None:
        self._held: dict[str, Claim] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, owner: str, claim: Claim) -> None:
        """Add a claim, unless its owner only watches a recording that belongs to others."""
        if claim.kind != WATCH or not any(held.is_lasting for held in self._held.values()):
            self._held[owner] = claim

    def release(self, owner: str) -> None:
        self._held.pop(owner, None)

    def release_abandoned(self, user: str, connected: Container[str]) -> None:
        """Release the registrations of a user whose clients have left, such as the kernel of a notebook that was restarted."""
        for owner, claim in list(self._held.items()):
            if claim.kind == REGISTER and user and claim.user == user and claim.client not in connected:
                self.release(owner)

    def of_client(self, client: str) -> list[str]:
        """Return the owners whose claims end with their client."""
        return [owner for owner, claim in self._held.items() if claim.client == client and not claim.is_lasting]

    def is_held_only_by(self, owner: str) -> bool:
        return set(self._held) == {owner}

    def kinds(self) -> list[str]:
        """Return the kinds of the claims that are held, sorted."""
        return sorted(claim.kind for claim in self._held.values())
