"""Processors with known behaviour."""

from __future__ import annotations

import os
import time
from typing import Any

import awkward as ak
import numpy as np

from coffea import processor


class Base(processor.ProcessorABC):  # type: ignore[misc]
    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


class PairProcessor(Base):
    """Reads eight branches and works on all pairs of muons."""

    def process(self, events: Any) -> dict[str, float]:
        muons = events.Muon[(events.Muon.pt > 10) & (abs(events.Muon.eta) < 2.4)]
        pairs = ak.combinations(muons[ak.num(muons) >= 2], 2, fields=["a", "b"])
        pairs = pairs[pairs.a.charge != pairs.b.charge]
        mass = np.sqrt(
            2 * pairs.a.pt * pairs.b.pt * (np.cosh(pairs.a.eta - pairs.b.eta) - np.cos(pairs.a.phi - pairs.b.phi))
        )
        jets = ak.sum(events.Jet.pt[events.Jet.pt > 30], axis=1)
        return {
            "mass": float(ak.sum(mass)),
            "jets": float(ak.sum(jets)),
            "met": float(ak.sum(events.MET.pt)),
        }


class MuonProcessor(Base):
    """Reads three branches."""

    def process(self, events: Any) -> dict[str, float]:
        return {"pt": float(ak.sum(events.Muon.pt[abs(events.Muon.eta) < 2.4]))}


class OtherFileProcessor(Base):
    """Reads a file of its own, as analyses do for corrections."""

    def process(self, events: Any) -> dict[str, float]:
        import uproot

        with uproot.open(os.environ["DASKSCOPE_OTHER_FILE"]) as file:
            file["Events"]["MET_pt"].array(entry_stop=1_000)
        return {"pt": float(ak.sum(events.Muon.pt))}


class FailingProcessor(Base):
    """Fails in the second half of a file."""

    def process(self, events: Any) -> dict[str, int]:
        if events.metadata["entrystart"] >= 100_000:
            raise ValueError("the second half is bad")
        return {"events": len(events)}


class SleepingProcessor(Base):
    """Waits as remote storage makes it wait: a fixed time, and a time per event."""

    fixed_s = 0.25
    s_per_event = 6e-6

    def process(self, events: Any) -> dict[str, int]:
        time.sleep(self.fixed_s + self.s_per_event * len(events))
        return {"events": len(events)}


class LoopProcessor(Base):
    """Loops over events in Python."""

    def process(self, events: Any) -> dict[str, float]:
        total = 0.0
        for muons in ak.to_list(events.Muon.pt):
            for pt in muons:
                if pt > 10:
                    total += pt * pt
        return {"total": total}
