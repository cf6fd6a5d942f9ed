"""A comparison of recordings, ready to print, to send and to draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from daskscope import units
from daskscope.analysis.compare.changes import PROVEN, Change, Changes, PrefixChange, compare_runs
from daskscope.analysis.compare.flame import DifferentialFlame, Side, merge_sides
from daskscope.analysis.compare.measurements import Measured, measure
from daskscope.analysis.compare.verdicts import repeats_needed
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import extent, lifetime
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording

#: Prefixes that a headline names, and that a Markdown table lists.
NAMED, LISTED = 3, 15
LABELS = {
    "cpu": "CPU", "noncpu": "Waiting", "serialize": "Serialize", "disk": "Disk", "transfer": "Transfer",
    "failed": "Lost or failed", "idle": "Idle",
}  # fmt: skip


def headline(changes: Changes) -> str:
    """Return the verdict and its reason in one line."""
    return " ".join(filter(None, (verdict(changes), reason(changes))))


def verdict(changes: Changes) -> str:
    """Return in one sentence whether the runs became slower or faster, or that it cannot be told."""
    wall = changes.wall
    if wall.verdict in PROVEN:
        return f"{units.percent(abs(wall.ratio or 0.0))} {wall.verdict}: {_instead(wall)}."
    if tasks := _proven_tasks(changes):
        return " ".join(tasks)
    if not changes.can_prove:
        return f"Cannot tell noise from change: {_instead(wall)}."
    if changes.is_load_different:
        return f"Times cannot be compared: {_instead(wall)}."
    return f"No difference shown: {_instead(wall)}."


def reason(changes: Changes) -> str:
    """Return the evidence of the verdict, as sentences."""
    wall, repeats = changes.wall, repeats_text(changes)
    if wall.verdict in PROVEN:
        apart = f"All {changes.repeats_after} runs after are {wall.verdict} than all {changes.repeats_before} before."
        return " ".join([apart if _are_apart(wall) else f"{repeats}.", *_proven_tasks(changes)])
    if _proven_tasks(changes):
        if wall.verdict == "cannot tell":
            return f"The total time cannot be compared: {_instead(wall)}."
        return f"The total time varies too much to tell: {_instead(wall)}."
    if changes.can_prove and changes.is_load_different:
        return f"{_other_programs(changes)}. CPU times show no difference."
    return f"{repeats[0].upper()}{repeats[1:]}."


def _proven_tasks(changes: Changes) -> list[str]:
    """Return the prefixes that became slower or faster, as sentences."""
    found = list[str]()
    for verdict in PROVEN:
        named = [prefix for prefix in changes.prefixes if prefix.verdict == verdict]
        named.sort(key=lambda prefix: -abs((prefix.total_us.after or 0.0) - (prefix.total_us.before or 0.0)))
        more = units.counted(len(named) - NAMED, "other prefix", "other prefixes") if len(named) > NAMED else ""
        if named:
            listed = ", ".join(map(_prefix_text, named[:NAMED]))
            found.append(f"{verdict.capitalize()} tasks: {listed}{f' and {more}' if more else ''}.")
    return found


def _instead(wall: Change) -> str:
    before, after = value_text(wall.before, units.duration), value_text(wall.after, units.duration)
    return f"{after} before and after" if before == after else f"{after} instead of {before}"


def repeats_text(changes: Changes) -> str:
    """Return the conclusions that the number of repeats allows."""
    if changes.can_prove:
        return f"{changes.repeats_before} repeats before and {changes.repeats_after} after"
    if changes.repeats_before == changes.repeats_after == 1:
        return f"one run each; {repeats_needed()} repeats each can prove a difference"
    return (
        f"{changes.repeats_before} and {changes.repeats_after} repeats are too few; "
        f"{repeats_needed()} each can prove a difference"
    )


def notes(changes: Changes) -> tuple[str, ...]:
    """Return notes for the reader, as sentences."""
    found = [*changes.left_out, *changes.hints]
    for prefix in changes.prefixes:
        if prefix.time.verdict in ("only before", "only after"):
            found.append(f"Tasks of {prefix.prefix} ran {prefix.time.verdict}.")
        elif _are_apart(prefix.count):
            found.append(f"{prefix.prefix} ran {_step(prefix.count, _whole)} tasks.")
        elif _are_apart(prefix.nbytes) and (prefix.nbytes.ratio is None or abs(prefix.nbytes.ratio) >= 0.1):
            found.append(f"The results of {prefix.prefix} have {_step(prefix.nbytes, units.nbytes)}.")
    if changes.is_load_different:
        repeat, load = "Repeat the runs in turns, or on a machine that is otherwise idle.", _other_programs(changes)
        is_said = load in reason(changes)
        found.append(
            repeat if is_said else f"{load}, so times that depend on the CPU prove nothing; CPU times do. {repeat}"
        )
    for change, unit in ((changes.threads, "threads"), (changes.errors, "failed tasks")):
        if _are_apart(change):
            found.append(f"The runs had {_step(change, _whole)} {unit}.")
    return tuple(found)


def to_markdown(changes: Changes, title: str = "") -> str:
    """Return a comment for a pull request: the headline, the tables that matter, and the rest folded."""
    lines = [f"### {title}" if title else "", f"**{_plain(headline(changes))}**", ""]
    lines += [f"- {_plain(note)}" for note in notes(changes)]
    rows = [("Total time", changes.wall, units.duration), ("Peak memory", changes.peak_memory, units.nbytes)]
    rows += [("Transferred", changes.transferred, units.nbytes)]
    lines += ["", *_table(["", "Before", "After", "Change", "Verdict"], [_row(*row) for row in rows])]
    listed = [prefix for prefix in changes.prefixes if prefix.time.verdict][:LISTED]
    titles = ["Task prefix", "Tasks", "Time per task", "Change", "CPU per task", "Change", "Verdict"]
    lines += ["", *_table(titles, [_prefix_row(prefix) for prefix in listed])]
    categories = [_row(LABELS[change.name], change, units.duration)[:4] for change in changes.thread_us]
    lines += ["", "<details><summary>Thread time, versions and code</summary>", ""]
    lines += _table(["Thread time", "Before", "After", "Change"], categories)
    for name, differences in (("Package", changes.versions), ("Config", changes.config)):
        if differences:
            rows_ = [[_plain(item.name), _plain(item.before) or "–", _plain(item.after) or "–"] for item in differences]
            lines += ["", *_table([name, "Before", "After"], rows_)]
    if changes.code:
        # A longer fence than any in the code.
        fence = "`" * (1 + max([2, *map(len, re.findall("`+", changes.code))]))
        lines += ["", f"{fence}diff", changes.code, fence]
    lines += ["", "</details>", ""]
    return "\n".join(lines).lstrip("\n")


def _prefix_text(prefix: PrefixChange) -> str:
    change = prefix.proven
    assert change is not None
    what = "CPU time per task" if change is prefix.cpu else "time per task"
    return f"{prefix.prefix} ({percent_text(change)} {what})"


def _row(label: str, change: Change, text: Callable[[float], str]) -> list[str]:
    return [
        label,
        *(recorded_text(value, text) for value in (change.before, change.after)),
        percent_text(change),
        change.verdict,
    ]


def _code_span(text: str) -> str:
    """Return a name as code. Inside of it, only what ends the code or the cell has a meaning."""
    plain = " ".join(text.replace("`", "'").replace("|", "\\|").split())
    return f"`{plain or '-'}`"


def _prefix_row(prefix: PrefixChange) -> list[str]:
    time, cpu = prefix.time, prefix.cpu
    return [
        _code_span(prefix.prefix), _step(prefix.count, _whole),
        _step(time, units.duration, percent=False), percent_text(time),
        _step(cpu, units.duration, percent=False), percent_text(cpu), prefix.verdict,
    ]  # fmt: skip


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [titles, ["---" if at == 0 else "---:" for at in range(len(titles))], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _step(change: Change, text: Callable[[float], str], *, percent: bool = True) -> str:
    """Return ``1.00 s → 1.20 s (+20 %)``, or one value if both are shown the same."""
    before, after = value_text(change.before, text), value_text(change.after, text)
    if before == after:
        return before
    ratio = f" ({percent_text(change)})" if percent and text is units.duration and change.ratio is not None else ""
    return f"{before} → {after}{ratio}"


def value_text(value: float | None, text: Callable[[float], str]) -> str:
    """Return a value as text; a dash if there is none."""
    return units.NOTHING if value is None else text(value)


def recorded_text(value: float | None, text: Callable[[float], str]) -> str:
    """Return a quantity of a whole run as text, which may not have been recorded."""
    return "not recorded" if value is None else text(value)


def percent_text(change: Change) -> str:
    """Return the relative change with its sign."""
    if change.ratio is None:
        return units.NOTHING
    if abs(change.ratio) < 0.001:
        return "0 %"
    return f"{'+' if change.ratio > 0 else ''}{units.percent(change.ratio)}"


def _whole(value: float) -> str:
    return units.count(round(value))


def _other_programs(changes: Changes) -> str:
    load = changes.other_cores
    before, after = (value_text(value, "{:.1f}".format) for value in (load.before, load.after))
    return f"Other programs on the hosts used {before} cores before and {after} after"


def _are_apart(change: Change) -> bool:
    """Return whether the ranges of both sides do not touch."""
    if change.before_range is None or change.after_range is None:
        return False
    (low, high), (first, last) = change.before_range, change.after_range
    return high < first or last < low


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: names come from users' code, and a comment may be read by others."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, {"<": "&lt;", ">": "&gt;"}.get(character, "\\" + character))
    return text.replace("\n", " ")


#: A recording, and the times that are compared.
Part = tuple[Recording, int, int]


@dataclass(frozen=True, repr=False)
class Comparison:
    """The comparison of two sets of runs."""

    #: Names of the runs.
    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: Changes
    flame: DifferentialFlame

    @property
    def headline(self) -> str:
        """Return the change in one sentence."""
        return headline(self.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader, as sentences."""
        return notes(self.changes)

    @property
    def is_shown(self) -> bool:
        """Return whether any difference in speed is proven."""
        return self.changes.is_shown

    def slowdowns(self, limit: float = 0.0) -> tuple[Change, ...]:
        """Return the proven slowdowns of more than ``limit`` (0.1: 10 %)."""
        return self.changes.slowdowns(limit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; times are in microseconds, with names ending in ``_us``."""
        return {
            "before": list(self.before),
            "after": list(self.after),
            "headline": self.headline,
            "verdict": verdict(self.changes),
            "reason": reason(self.changes),
            "notes": list(self.notes),
            **self.changes.to_dict(),
            "flame": self.flame.to_dict(),
        }

    def to_markdown(self, title: str = "") -> str:
        """Return a comment for a pull request."""
        return to_markdown(self.changes, title)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.before)} and {len(self.after)} runs: {self.headline}>"


def compare_parts(before: Iterable[Part], after: Iterable[Part]) -> Comparison:
    """Compare two sets of recordings. Each is read once and not kept, so that many large ones fit."""
    measured, flames = list[list[Measured]](), list[Side]()
    for parts in (before, after):
        runs, side = list[Measured](), Side()
        for recording, start_us, stop_us in parts:
            runs.append(measure(recording, start_us, stop_us))
            side.add(recording, start_us, stop_us)
        if not runs:
            raise DaskscopeError("There is nothing to compare. Give at least one run before and one after.")
        measured.append(runs)
        flames.append(side)
    first, second = measured
    names = [tuple(run.source for run in runs) for runs in measured]
    return Comparison(names[0], names[1], compare_runs(first, second), merge_sides(*flames))


def part_of(recording: Recording, computation: str = "", time: tuple[float, float] | None = None) -> Part:
    """Return the part of a recording to compare: all of it, one computation (ID or position), or seconds from its start."""
    if computation:
        return _computation(recording, computation)
    start, stop = extent(recording)
    if time is not None:
        begin, end = (start + round(1e6 * seconds) for seconds in time)
        start, stop = begin, min(stop, end)
        if start >= stop:
            raise DaskscopeError(
                f"{recording.source} has no data from {time[0]:g} to {time[1]:g} s. Give seconds from its start."
            )
        return select(recording, Selection(start_us=start, stop_us=stop)), start, stop
    return recording, start, stop


def _computation(recording: Recording, wanted: str) -> Part:
    table = recording["computations"]
    rows = sorted(table.records("start_us", "computation", "stop_us"))
    names = [name for _, name, _ in rows]
    place = int(wanted) if wanted.lstrip("-").isdecimal() else 0
    if 0 < abs(place) <= len(rows):
        start, name, stop = rows[place - 1 if place > 0 else place]
    elif wanted in names:
        start, name, stop = rows[names.index(wanted)]
    else:
        raise DaskscopeError(
            f"{recording.source} has no computation {wanted}. It has {len(rows)}: give an ID, 1 for the first or -1 for the last."
        )
    stop = stop or lifetime(recording)[1]
    return select(recording, Selection(start_us=start, stop_us=stop, computation=name)), start, stop
