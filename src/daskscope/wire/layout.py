"""Constants of the wire format, shared by the writing and the reading side.

A frame is one batch: a 16-byte prefix, a JSON header, a body. The prefix is the magic with the wire version, the length
of the header, the length of the body, and the CRC-32 of everything after the magic except the CRC itself.
"""

from __future__ import annotations

import struct

#: First four bytes of every frame; the last is the version of the wire format (not of the schema).
MAGIC = b"DSB\x01"
PREFIX = struct.Struct("<4sIII")

#: First bytes of a recording or spool file, before its first frame.
FILE_MAGIC = b"\x89daskscope\r\n\x1a\n\x01"

#: Limits that a reader checks before it allocates, and a writer before it writes. The recorder stays far below them
#: (20,000 rows, about 1 MB). Together they limit a hostile frame to about 500 MB of the reader's memory.
MAX_HEADER = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
MAX_RAW = 64 * 1024 * 1024
MAX_DIRECTORY = 1024 * 1024
MAX_ROWS = 1 << 18
#: Values of one list column.
MAX_VALUES = 1 << 22
#: Length of a cluster's ID.
MAX_CLUSTER = 200
#: Length of a group name from which keys are built, and of all group names used that way in a batch.
MAX_NAME = 64 * 1024
MAX_NAMES = 64 * 1024 * 1024
#: Items of all string dictionaries of a body, counted by ``count_items``.
MAX_ITEMS = 1 << 21


def count_items(data: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, at the speed of ``memchr`` and without parsing it.

    Three bytes of JSON (``[],``) become 64 bytes of objects, so the number of values must be checked before parsing.
    """
    return data.count(b",") + data.count(b"[") + data.count(b"{") + data.count(b":")
