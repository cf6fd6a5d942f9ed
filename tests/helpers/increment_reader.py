"""Read increments as a page does, without the code that writes them."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from tests.helpers.hosted import HostedServer, HttpResponse

TYPES = {"f8": "<f8", "u1": "u1", "u2": "<u2", "u4": "<u4"}


@dataclass
class Decoded:
    """The header and the columns of an increment."""

    header: dict[str, Any]
    parts: dict[str, dict[str, list[float]]]


def decode(data: bytes) -> Decoded:
    (size,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + size])
    raw, at = zlib.decompress(data[4 + size :]), 0
    parts: dict[str, dict[str, list[float]]] = {}
    for part, name, kind, length in header["columns"]:
        values = np.frombuffer(raw, TYPES[kind], length, at)
        parts.setdefault(part, {})[name] = values.tolist()
        at += values.nbytes
    assert at == len(raw)
    return Decoded(header, parts)


@dataclass
class Reader:
    """Follows a cluster: asks for one increment after the other, and keeps the keys of the bars."""

    cluster: str
    computation: str = ""
    token: str = ""
    cursor: str = ""
    keys: list[str] = field(default_factory=list)
    resets: int = 0

    def ask(self, server: HostedServer, wait: float = 0.0) -> HttpResponse:
        query = {"cursor": self.cursor, "wait": wait, "computation": self.computation}
        path = f"/api/v1/clusters/{quote(self.cluster)}/increments"
        return server.ask("GET", f"{path}?{urlencode(query)}", token=self.token)

    def read(self, server: HostedServer, wait: float = 0.0) -> Decoded:
        answer = self.ask(server, wait)
        assert answer.status == 200, answer.text
        found = decode(answer.body)
        if found.header["is_first"]:
            self.keys.clear()
            self.resets += 1
        self.cursor = found.header["cursor"]
        self.keys += [key for key in found.header["keys"] if key]
        return found
