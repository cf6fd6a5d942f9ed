"""The page about the wire format is enough to write a decoder.

This decoder was written from ``docs/reference/wire-format.md``; of daskscope it uses the table definitions only.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

from daskscope.model.tables import TABLES

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
EMPTY: dict[str, Any] = {"str": "", "float": 0.0}


def test_a_decoder_written_from_the_page_reads_the_golden_file() -> None:
    expected = json.loads((RECORDINGS / "v1.json").read_text())["tables"]
    tables: dict[str, dict[str, list[Any]]] = {}
    for table, columns in frames((RECORDINGS / "v1.daskscope").read_bytes()):
        for name, values in columns.items():
            tables.setdefault(table, {}).setdefault(name, []).extend(values)

    # Columns that were added later are not in the file.
    assert {table: {name: tables[table][name] for name in columns} for table, columns in expected.items()} == expected


def frames(data: bytes) -> list[tuple[str, dict[str, list[Any]]]]:
    assert data[:15].hex(" ") == "89 64 61 73 6b 73 63 6f 70 65 0d 0a 1a 0a 01"
    found, offset = [], 15
    while offset < len(data):
        magic, header_size, body_size, crc = struct.unpack_from("<4sIII", data, offset)
        start = offset + 16
        content = data[start : start + header_size + body_size]
        assert magic.hex(" ") == "44 53 42 01"
        assert zlib.crc32(data[offset + 4 : offset + 12] + content) == crc
        header = json.loads(content[:header_size])
        found.append((header["table"], Body(header, content[header_size:]).columns()))
        offset = start + header_size + body_size
    return found


class Body:
    def __init__(self, header: dict[str, Any], data: bytes) -> None:
        (size,) = struct.unpack_from("<I", data)
        self.packed, self.plain = zlib.decompress(data[4 : 4 + size]), data[4 + size :]
        assert len(self.packed) + len(self.plain) == header["raw"]
        self.kinds = {column.name: column.kind for column in TABLES[header["table"]].columns}
        self.rows = header["rows"]
        self.codes: dict[str, list[int]] = {}

    def columns(self) -> dict[str, list[Any]]:
        (size,) = struct.unpack("<I", self.read_bytes(4))
        done: dict[str, list[Any]] = {}
        flats: dict[str, list[Any]] = {}
        for name, *spec in json.loads(self.read_bytes(size)):
            kind = self.kinds[name]
            if kind.endswith("[]"):
                _, lengths_spec, count, inner = spec
                lengths = self.scalars("", "int", lengths_spec, self.rows, {})
                flats[name] = self.scalars(name, kind[:-2], inner, count, flats) if count else []
                ends = list(accumulate(lengths))
                done[name] = [flats[name][end - n : end] for end, n in zip(ends, lengths, strict=True)]
            else:
                done[name] = self.scalars(name, kind, spec, self.rows, done)
        assert (self.packed, self.plain) == (b"", b"")
        missing = {n: [EMPTY.get(k, 0) if "[]" not in k else []] * self.rows for n, k in self.kinds.items()}
        return {**missing, **done}

    def read_bytes(self, n: int) -> bytes:
        taken, self.packed = self.packed[:n], self.packed[n:]
        return taken

    def planes(self, mask: int, n: int, form: str = "q") -> list[Any]:
        planes = [self.read_bytes(n) if mask >> k & 1 else bytes(n) for k in range(8)]
        return list(struct.unpack(f"<{n}{form}", bytes(byte for value in zip(*planes, strict=True) for byte in value)))

    def scalars(self, name: str, kind: str, spec: list[Any], rows: int, done: dict[str, list[Any]]) -> list[Any]:
        encoding, *rest = spec
        if encoding == "const":
            self.codes[name] = [0] * rows
            return [float(rest[0]) if kind == "float" else rest[0]] * rows
        if encoding == "float":
            return self.planes(rest[0], rows, "d")
        return (
            self.strings(name, encoding, rest, rows, done)
            if kind == "str"
            else self.integers(encoding, rest, rows, done)
        )

    def integers(self, encoding: str, rest: list[Any], rows: int, done: dict[str, list[Any]]) -> list[int]:
        if encoding == "int":
            return self.planes(rest[0], rows)
        if encoding == "delta":
            first, least, mask = rest
            return list(accumulate([first, *(delta + least for delta in self.planes(mask, rows)[1:])]))
        if encoding == "gap":
            other, sign, mask = rest
            return [base + sign * gap for base, gap in zip(done[other], self.planes(mask, rows), strict=True)]
        assert encoding == "codes"
        values = self.planes(rest[1], rest[0])
        return [values[code] for code in self.planes(rest[2], rows)]

    def strings(self, name: str, encoding: str, rest: list[Any], rows: int, done: dict[str, list[Any]]) -> list[str]:
        if encoding == "keys":
            return self.keys(rest, done["group"], rows)
        if encoding == "dict":
            values = json.loads(self.read_bytes(rest[0]))
            self.codes[name] = self.planes(rest[1], rows)
        elif encoding == "runs":
            values = json.loads(self.read_bytes(rest[1]))
            edges = [*rest[0], rows]
            self.codes[name] = [k for k in range(len(values)) for _ in range(edges[k + 1] - edges[k])]
        else:
            assert encoding == "via"
            values = json.loads(self.read_bytes(rest[1]))
            self.codes[name] = self.codes[rest[0]]
        return [values[code] for code in self.codes[name]]

    def keys(self, rest: list[Any], groups: list[str], rows: int) -> list[str]:
        size, parts = rest
        shapes = list(self.read_bytes(size)) or [parts[0][0]] * rows
        keys = [""] * rows
        for shape, *spec in parts:
            mine = [row for row in range(rows) if shapes[row] == shape]
            for row, key in zip(mine, self.part(shape, spec, [groups[row] for row in mine]), strict=True):
                keys[row] = key
        return keys

    def part(self, shape: int, spec: list[Any], groups: list[str]) -> list[str]:
        if shape == 0:
            texts: list[str] = json.loads(self.read_bytes(spec[0]))
            return texts
        if shape == 1:
            hashes, self.plain = self.plain[: spec[0]], self.plain[spec[0] :]
            return [f"{group}-{hashes[16 * i : 16 * i + 16].hex()}" for i, group in enumerate(groups)]
        columns = [self.planes(mask, len(groups)) for mask in spec]
        return [f"({group!r}, {', '.join(map(str, items))})" for group, *items in zip(groups, *columns, strict=True)]
