"""Writes viewer pages with made-up runs, to look at while building the viewer.

    python dev/sample.py OUT.html [--tasks 2700] [--hostile] [--empty] [--template dist/viewer.html] [--split DIR]

The same arguments give the same page. ``--split`` writes ``report.json`` and ``blocks/`` for the live host instead.
"""

from __future__ import annotations

import argparse
import base64
import json
import zlib
from pathlib import Path

import numpy as np

from run import HOSTILE, Run, simulate
from sections import document

HERE = Path(__file__).resolve().parent


class Blocks:
    """Collects binary columns under short names."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def __call__(self, values: object, dtype: str = "") -> dict[str, object]:
        name = f"b{len(self.data)}"
        if dtype == "utf8":
            lines = [str(v).replace("\n", " ") for v in values]  # type: ignore[attr-defined]
            raw, length = "\n".join(lines).encode(), len(lines)
        else:
            array = np.asarray(values)
            if not dtype:
                top = int(array.max()) if array.size else 0
                dtype = "u8" if top < 256 else "u16" if top < 65536 else "u32"
            np_type = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f32": "<f4", "f64": "<f8"}[dtype]
            array = np.ascontiguousarray(array.astype(np_type))
            raw = array.view(np.uint8).reshape(array.size, -1).T.tobytes() if array.size else b""
            length = array.size
        self.data[name] = zlib.compress(raw, 6)
        return {"block": name, "dtype": dtype, "length": int(length)}


def page(template: str, report: dict[str, object], blocks: dict[str, bytes]) -> str:
    text = json.dumps(report, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = [f'<script type="application/json" id="daskscope-report">{text}</script>']
    for name, data in blocks.items():
        b64 = base64.b64encode(data).decode()
        parts.append(f'<script type="text/plain" id="daskscope-block-{name}">{b64}</script>')
    if template.count("<!--DASKSCOPE-DATA-->") != 1:
        raise SystemExit("the template must hold the placeholder exactly once")
    return template.replace("<!--DASKSCOPE-DATA-->", "\n".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=2700)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--template", type=Path, default=HERE.parent / "dist" / "viewer.html")
    args = parser.parse_args()
    run = Run.nothing() if args.empty else simulate(args.tasks, hostile=args.hostile)
    blocks = Blocks()
    report = document(run, blocks, evil=HOSTILE if args.hostile else "")
    if args.split:
        (args.out / "blocks").mkdir(parents=True, exist_ok=True)
        (args.out / "report.json").write_text(json.dumps(report))
        for name, data in blocks.data.items():
            (args.out / "blocks" / name).write_bytes(data)
        template = args.template.read_text()
        (args.out / "index.html").write_text(
            template.replace("<!--DASKSCOPE-DATA-->", '<meta name="daskscope-source" content=".">')
        )
    else:
        args.out.write_text(page(args.template.read_text(), report, blocks.data))
    size = args.out.stat().st_size if args.out.is_file() else 0
    print(f"{args.out}: {run.tasks:,} tasks, {size:,} bytes")


if __name__ == "__main__":
    main()
