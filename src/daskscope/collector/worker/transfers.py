"""Read new entries of a worker's transfer logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.tables import TRANSFERS
from ..aliases import PLAIN, Aliases
from ..rows import Columns, empty

#: Keys of a transfer that are recorded, and their characters. Dask asks for up to 50 MB at once, which may be thousands of results.
MAX_KEYS, MAX_CHARACTERS = 20, 2_000

Entry = Mapping[str, Any]


class TransferLog:
    """Drains the incoming and outgoing transfers since the last drain.

    The logs keep 1,000 entries each and have no index, so they are read backwards until the last entry seen. ``start`` and
    ``stop`` are on the scheduler's clock in both logs, from distributed 2023.12 to 2026.8 (``middle`` is not in the outgoing log).
    """

    def __init__(self, worker: Any, *, since: float = 0.0, aliases: Aliases = PLAIN) -> None:
        self._aliases = aliases
        self._incoming = _Tail(since)
        self._outgoing = _Tail(since)
        self._worker = worker
        self._incoming.started = incoming_total(worker)
        self._outgoing.started = outgoing_total(worker)

    @property
    def dropped(self) -> int:
        """Transfers that dropped out of the logs before they were read."""
        return self._incoming.dropped + self._outgoing.dropped

    def drain(self, worker: str) -> Columns:
        columns = empty(TRANSFERS)
        for entry in self._incoming.new(incoming_log(self._worker), incoming_total(self._worker)):
            _append(columns, entry, source=_peer(entry), destination=worker, direction="incoming")
            columns["first_keys"].append(self._first_keys(entry))
        for entry in self._outgoing.new(outgoing_log(self._worker), outgoing_total(self._worker)):
            _append(columns, entry, source=worker, destination=_peer(entry), direction="outgoing")
            columns["first_keys"].append(self._first_keys(entry))
        return columns

    def _first_keys(self, entry: Entry) -> list[str]:
        """Return the keys of a transfer up to the limits; one that is longer than all may be is left out."""
        found: list[str] = []
        left = MAX_CHARACTERS
        for key in entry.get("keys") or ():
            text = self._aliases.key(key)
            left -= len(text)
            if left < 0 or len(found) == MAX_KEYS:
                break
            found.append(text)
        return found


class _Tail:
    """The reading position in one log."""

    def __init__(self, since: float) -> None:
        self.dropped = 0
        self.started: int | None = None
        self._since = since
        self._last: Entry | None = None

    def new(self, log: list[Entry], started: int | None) -> list[Entry]:
        entries: list[Entry] = []
        found = self._last is None
        for entry in reversed(log):
            if entry is self._last:
                found = True
                break
            if entry["stop"] < self._since:
                break
            entries.append(entry)
        if not found:
            self.dropped += self._lost(len(entries), started)
        self.started = started
        if log:
            self._last = log[-1]
        return entries[::-1]

    def _lost(self, got: int, started: int | None) -> int:
        """Return the number of lost entries by Dask's counter if it has one; at least 1, because the last entry seen is gone.

        Dask counts a transfer when it begins and logs it when it succeeds, so the number is exact only if none failed.
        """
        if started is None or self.started is None:
            return 1
        return max(started - self.started - got, 1)


def incoming_log(worker: Any) -> list[Entry]:
    return _log(worker, "transfer_incoming_log", "incoming_transfer_log")


def outgoing_log(worker: Any) -> list[Entry]:
    return _log(worker, "transfer_outgoing_log", "outgoing_transfer_log")


def incoming_total(worker: Any) -> int | None:
    return getattr(getattr(worker, "state", None), "transfer_incoming_count_total", None)


def outgoing_total(worker: Any) -> int | None:
    return getattr(worker, "transfer_outgoing_count_total", None)


def _log(worker: Any, name: str, older_name: str) -> list[Entry]:
    # Look up the older name only if needed: in newer versions it is a deprecated alias that warns.
    log = getattr(worker, name, None)
    return list(log if log is not None else getattr(worker, older_name, ()))


def _peer(entry: Entry) -> str:
    """Return the address of the other side; empty if the scheduler or a client fetched the data, which send no address."""
    return str(entry.get("who") or "")


def _append(columns: Columns, entry: Entry, *, source: str, destination: str, direction: str) -> None:
    columns["start_us"].append(round(entry["start"] * 1e6))
    columns["stop_us"].append(round(entry["stop"] * 1e6))
    columns["source"].append(source)
    columns["destination"].append(destination)
    columns["direction"].append(direction)
    columns["nbytes"].append(int(entry.get("total") or 0))
    columns["compressed_nbytes"].append(int(entry.get("compressed") or 0))
    columns["keys"].append(len(entry.get("keys") or ()))
