"""Make ROOT files like those of an experiment: a few branches, or many, in baskets of 20,000 events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot

BASKET = 20_000


def make_narrow(path: Path, events: int, seed: int) -> None:
    """Write muons, jets and missing energy: 18 branches."""
    _write(path, events, seed, triggers=0)


def make_wide(path: Path, events: int, seed: int) -> None:
    """Write the same, and 900 trigger flags."""
    _write(path, events, seed, triggers=900)


def _write(path: Path, events: int, seed: int, *, triggers: int) -> None:
    rng = np.random.default_rng(seed)
    partial = path.with_suffix(".partial")
    with uproot.recreate(partial, compression=uproot.ZLIB(1)) as file:
        tree = None
        for start in range(0, events, BASKET):
            part = _part(rng, min(BASKET, events - start), start, triggers)
            if tree is None:
                types = {name: getattr(values, "dtype", None) or values.type for name, values in part.items()}
                tree = file.mktree(
                    "Events",
                    types,
                    counter_name=lambda name: f"n{name}",
                    field_name=lambda a, b: f"{a}_{b}" if a else b,
                )
            tree.extend(part)
    partial.rename(path)


def _part(rng: Any, events: int, start: int, triggers: int) -> dict[str, Any]:
    part: dict[str, Any] = {
        "run": np.full(events, 1, "u4"),
        "luminosityBlock": ((start + np.arange(events)) // 500).astype("u4"),
        "event": start + np.arange(events, dtype="u8"),
        "MET_pt": rng.exponential(30, events).astype("f4"),
        "MET_phi": rng.uniform(-np.pi, np.pi, events).astype("f4"),
    }
    part |= {f"HLT_Path{number}": rng.random(events) < 0.05 for number in range(triggers)}
    muons = rng.poisson(2.2, events)
    part["Muon"] = ak.zip(
        {
            "pt": _jagged(rng.exponential(25, muons.sum()) + 3, muons),
            "eta": _jagged(rng.normal(0, 1.3, muons.sum()), muons),
            "phi": _jagged(rng.uniform(-np.pi, np.pi, muons.sum()), muons),
            "mass": _jagged(np.full(muons.sum(), 0.10566), muons),
            "charge": ak.unflatten(rng.choice(np.array([-1, 1], "i4"), muons.sum()), muons),
        }
    )
    jets = rng.poisson(5, events)
    part["Jet"] = ak.zip(
        {
            "pt": _jagged(rng.exponential(40, jets.sum()) + 15, jets),
            "eta": _jagged(rng.normal(0, 2, jets.sum()), jets),
            "phi": _jagged(rng.uniform(-np.pi, np.pi, jets.sum()), jets),
            "mass": _jagged(rng.exponential(8, jets.sum()), jets),
        }
    )
    return part


def _jagged(values: Any, counts: Any) -> Any:
    return ak.unflatten(values.astype("f4"), counts)
