"""Texts of a recording made harmless for a terminal.

Keys, messages and names come from other people's programs. Control characters, escape sequences, characters that change the
direction of writing and characters nobody can see are shown as Python would write them (``\\x1b``, ``\\u202e``).
"""

from __future__ import annotations

import unicodedata

#: Control, format (bidi, zero width), lone surrogate, private, unassigned; line and paragraph separator.
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def escape(text: str) -> str:
    """The text on one line, everything that is not plainly visible written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape_character, text))


def escape_lines(text: str) -> list[str]:
    """The lines of a text, each made harmless; tabs become spaces."""
    return [escape(line) for line in text.expandtabs(4).replace("\r\n", "\n").split("\n")]


def width(text: str) -> int:
    """How many columns an escaped text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
