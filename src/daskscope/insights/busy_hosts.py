"""Tasks wait for a CPU core."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.waiting import WHEN, waiting_finding
from daskscope.model.recording import Recording

ADVICE = "More threads want to run than the host has cores. Use fewer worker threads per host, or look for other programs on it."


def check(facts: Facts) -> Iterator[Finding]:
    yield from waiting_finding(facts, "core", "waited for a CPU core", ADVICE, more=_host_load(facts.recording))


def _host_load(recording: Recording) -> str:
    """Return how busy the hosts of the workers were, as a sentence."""
    table = recording["processes"]
    capacity = float((table["wall_us"] * table["host_cores"]).sum())
    if not capacity:
        return ""
    return f" The hosts were {units.percent(min(1.0, float(table['host_cpu_us'].sum()) / capacity))} busy."


RULE = Rule(
    "busy-hosts",
    "Tasks wait for a CPU core",
    ("More threads want to run than the host has cores, because of other programs or of too many worker threads."),
    WHEN,
    check,
)
