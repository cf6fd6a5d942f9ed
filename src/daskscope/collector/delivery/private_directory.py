"""Check that nobody else can read or replace what is written to a directory.

Everybody can create files in a temp directory, also one with the name that a recorder or a server is going to use.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotPrivate(OSError):
    """A directory is in a place that everybody can write to, and somebody else made it."""


def check_private(directory: Path) -> None:
    """Raise ``NotPrivate`` if a part of the path lies where everybody can create files and is a link or another user's.

    A directory elsewhere is not checked: teams share directories on purpose.
    """
    if not hasattr(os, "geteuid"):
        return
    path = directory.absolute()
    is_shared = False
    for part in (*reversed(path.parents), path):
        try:
            found = part.lstat()
            if is_shared and stat.S_ISLNK(found.st_mode):
                raise NotPrivate(f"{part} is a link, in a directory that everybody can write to")
            if is_shared and found.st_uid not in (os.geteuid(), 0):
                raise NotPrivate(f"{part} belongs to another user, in a directory that everybody can write to")
            is_shared = bool(part.stat().st_mode & stat.S_IWOTH)
        except FileNotFoundError:
            return
