"""Remember earlier recordings of a scheduler, so that a later one to the same destination continues them.

Both are one run to a server or a directory: the scheduler has one ID. The notes are kept in an attribute of the scheduler, as
plain values, because the next recorder may be of another version.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from ..settings import Settings

ATTRIBUTE = "_daskscope_recorded"
#: Destinations that are remembered.
MAX_DESTINATIONS = 20


@dataclass(frozen=True)
class Earlier:
    """The recordings so far: when the first began, when the last ended, and the ID of the next execution."""

    began_us: int
    ended_us: int
    next_id: int


def recall(scheduler: Any, settings: Settings) -> Earlier | None:
    """Return the earlier recordings to the destination in the settings; None if there is none."""
    notes = getattr(scheduler, ATTRIBUTE, None)
    found = notes.get(_destination(settings)) if isinstance(notes, dict) and _destination(settings) else None
    if not isinstance(found, tuple) or len(found) != 3 or not all(type(value) is int for value in found):
        return None
    return Earlier(*found)


def remember(scheduler: Any, settings: Settings, earlier: Earlier) -> None:
    """Note a recording that ends now, for the next recorder of this scheduler."""
    if not _destination(settings):
        return
    notes = getattr(scheduler, ATTRIBUTE, None)
    notes = dict(notes) if isinstance(notes, dict) else {}
    if len(notes) < MAX_DESTINATIONS or _destination(settings) in notes:
        notes[_destination(settings)] = astuple(earlier)
        setattr(scheduler, ATTRIBUTE, notes)


def _destination(settings: Settings) -> str:
    """Return where the frames go; empty if only readers get them."""
    parts = (settings.server.rstrip("/"), settings.account, settings.directory)
    return "\n".join(parts) if settings.server or settings.directory else ""
