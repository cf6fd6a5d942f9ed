"""A coffea analysis with its report and its own metrics: the processor runs on Dask, the report is one file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot
from coffea.nanoevents import BaseSchema
from distributed import Client

from coffea import processor
from daskscope import performance_report


class Processor(processor.ProcessorABC):  # type: ignore[misc]
    """Counts muons with enough transverse momentum."""

    def process(self, events: Any) -> dict[str, int]:
        return {"events": len(events), "muons": int(ak.sum(events["pt"] > 30))}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def write_events(path: Path, events: int = 20_000) -> None:
    rng = np.random.default_rng(0)
    with uproot.recreate(path) as file:
        file["Events"] = {"pt": rng.exponential(20, events), "eta": rng.normal(0, 1, events)}


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client,
    ):
        path = Path(directory) / "events.root"
        write_events(path)
        fileset = {"muons": [str(path)]}
        executor = processor.DaskExecutor(client=client)
        run = processor.Runner(executor=executor, schema=BaseSchema, chunksize=2_000, savemetrics=True)
        with performance_report(filename="dask-report.html") as report:
            output, metrics = run(fileset, processor_instance=Processor(), treename="Events")
    print(output, metrics["entries"])
    print(f"Open {report.path} in a browser.")


if __name__ == "__main__":
    main()
