"""Bytes of reports that are on their way: they fill the disk before there is a report to count.

Only the event loop counts, so that nothing has to be locked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Arriving:
    """Bytes by account."""

    _nbytes: Counter[int] = field(default_factory=Counter)

    def nbytes(self, account: int) -> int:
        """What all uploads of an account have by now."""
        return self._nbytes[account]

    @contextmanager
    def upload(self, account: int) -> Iterator[Upload]:
        """One more upload; what came of it counts until the block ends."""
        upload = Upload(account, self._nbytes)
        try:
            yield upload
        finally:
            self._nbytes[account] -= upload.nbytes
            # Without what is zero: accounts come and go.
            self._nbytes += Counter()


@dataclass
class Upload:
    """What came so far of one of them."""

    account: int
    _all: Counter[int]
    nbytes: int = 0

    def add(self, nbytes: int) -> int:
        """Count a part; what all uploads of the account have by now."""
        self.nbytes += nbytes
        self._all[self.account] += nbytes
        return self._all[self.account]
