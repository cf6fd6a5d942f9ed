"""A sealed frame for tests of the spool."""

from __future__ import annotations

import os

from daskscope.collector.delivery.outbox import Sealed
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal


def frame(sequence: int, size: int = 0) -> Sealed:
    rows = [{"topic": f"t{sequence}", "detail": os.urandom(size // 2).hex()}]
    body = encode_body("events", make_columns("events", rows))
    data = seal(body, cluster="c", epoch=1, sequence=sequence, kept=sequence + 1, dropped=0)
    return Sealed(sequence, "events", 1, data)
