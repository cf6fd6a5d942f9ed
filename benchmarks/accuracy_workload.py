"""Run one workload of ``scripts/bench accuracy`` and write its statements to a file.

Workers import the main module of the process that starts them. So this one imports the rest in its function, and a worker has 67 MB
instead of 206.
"""

from __future__ import annotations

import sys


def main(name: str, answer: str) -> None:
    import json
    import logging
    from dataclasses import asdict
    from pathlib import Path

    from benchmarks.accuracy import load_workloads, measure

    # Lost workers are part of the workloads.
    for logger in ("distributed", "daskscope"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    statements = measure(name, *load_workloads()[name])
    Path(answer).write_text(json.dumps([asdict(statement) for statement in statements]))


if __name__ == "__main__":
    main(*sys.argv[1:])
