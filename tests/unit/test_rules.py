"""The list of rules, their documentation, and the limit of what any of them promises."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from tests.helpers.rule_rows import CLUSTER, WORKERS, S, T, task

from daskscope import insights
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Rule
from daskscope.insights.rules import RULES
from daskscope.testing import make_recording


def test_every_rule_of_a_family_is_listed_once_with_its_name() -> None:
    modules = [
        importlib.import_module(f"daskscope.insights.{found.name}") for found in pkgutil.iter_modules(insights.__path__)
    ]
    mine = {
        name.lower().replace("_", "-"): value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Rule)
    }
    assert mine == {rule.id: rule for rule in RULES}
    assert len(RULES) == len(mine)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_says_why_and_when(rule: Rule) -> None:
    assert rule.title and rule.title[0].isupper() and not rule.title.endswith(".")
    assert rule.why.endswith(".") and rule.when.endswith(".")


def test_less_idle_time_saves_no_more_than_is_beyond_the_longest_chain() -> None:
    tasks = [task(n * 10, n * 10 + 10, id=n, key=f"k{n}") for n in range(9)]
    edges = [{"task": n + 1, "dependency": n, "seen_us": T} for n in range(8)]
    recording = make_recording({"clusters": [CLUSTER], "workers": WORKERS, "tasks": tasks, "edges": edges})
    facts = Facts.of(recording, *extent(recording))
    assert facts.path.bound_us == 90 * S
    saved = facts.idle_time(200 * S, "anything")
    assert saved is not None
    assert (saved.wall_low_us, saved.wall_high_us) == (10 * S, 10 * S)
    # Shorter tasks shorten the chain, too.
    shorter = facts.thread_time(60 * S, "anything")
    assert shorter is not None
    assert shorter.wall_high_us == 60 * S
