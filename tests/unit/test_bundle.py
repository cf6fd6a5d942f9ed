"""The bundle: source that loads under a name of its own, refers to nothing by name, and says why where it cannot load."""

from __future__ import annotations

import ast
import asyncio
import json
import pickle
import pickletools
import subprocess
import sys
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector import bundle
from daskscope.collector.bundle import PresentFunction, ShippedFunction, ShippedPlugin

START = "collector.agent:start_agent"


def names_in(data: bytes) -> set[str]:
    """What a pickle looks up by name."""
    strings: list[str] = []
    found = set()
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "STACK_GLOBAL":
            found.add(".".join(strings[-2:]))
        elif opcode.name == "GLOBAL":
            found.add(str(argument).replace(" ", "."))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


@pytest.mark.parametrize(
    "shipped",
    [ShippedPlugin({"name": "run"}), ShippedFunction(START), PresentFunction(START)],
    ids=lambda shipped: type(shipped).__name__,
)
def test_what_is_shipped_refers_to_nothing_but_eval(shipped: object) -> None:
    assert names_in(pickle.dumps(shipped)) == {"builtins.eval"}


def test_a_bundle_stays_small() -> None:
    assert len(pickle.dumps(ShippedPlugin({}))) < 100_000
    assert len(pickle.dumps(PresentFunction(START))) < 500


def test_every_module_of_the_bundle_finds_what_it_imports_in_the_bundle() -> None:
    sources = bundle.sources()
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.level:
                package = name.split(".")[: -node.level] if name.count(".") or node.level == 1 else []
                target = ".".join([*package, *filter(None, [node.module])])
                assert target in sources or all(f"{target}.{alias.name}".strip(".") in sources for alias in node.names)


def test_the_bundle_loads_where_daskscope_and_numpy_are_not_installed() -> None:
    script = (
        "import asyncio, pickle, sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('daskscope', 'numpy', 'pandas'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "plugin, function = pickle.loads(sys.stdin.buffer.read())\n"
        "answer = asyncio.run(function(dask_worker=None, settings={}))\n"
        "print(type(plugin).__name__, plugin.name, plugin.idempotent, answer.partition(':')[0])\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('daskscope', 'numpy'))))\n"
    )
    shipped = pickle.dumps((ShippedPlugin({}), ShippedFunction(START)))

    ran = subprocess.run([sys.executable, "-c", script], input=shipped, capture_output=True, check=False)

    assert ran.stderr.decode() == ""
    # There is no worker, so the agent itself refuses: it was there to do so.
    assert ran.stdout.decode().splitlines() == ["Shipped daskscope True refused", ""]


def test_a_bundle_that_was_shipped_is_handed_on_as_it_came() -> None:
    root = bundle.private_root(bundle.payload())
    asyncio.run(pickle.loads(pickle.dumps(ShippedFunction("collector.bundle:payload")))())
    shipped = sys.modules[f"{root}.collector.bundle"]

    assert shipped is not bundle
    assert shipped.payload() == bundle.payload()
    assert shipped.private_root(shipped.payload()) == root


def test_another_version_of_the_bundle_has_another_name() -> None:
    assert bundle.private_root(b"one") != bundle.private_root(b"two")


def test_a_bundle_that_does_not_load_says_why_instead_of_raising(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = zlib.compress(
        json.dumps({"": "", "collector": "", "collector.agent": "import nothing_of_this_name"}).encode()
    )
    monkeypatch.setattr(bundle, "payload", lambda: broken)

    function = pickle.loads(pickle.dumps(ShippedFunction(START)))

    assert "nothing_of_this_name" in asyncio.run(function(dask_worker=None, settings={}))


def test_a_function_that_was_never_shipped_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "payload", lambda: b"never shipped")

    assert pickle.loads(pickle.dumps(PresentFunction(START)))(dask_worker=None, settings={}) == "absent"


class Scheduler(SimpleNamespace):
    """As much of a scheduler as registering a plugin takes."""

    def __init__(self) -> None:
        super().__init__(handlers={}, plugins={})

    async def register(self, plugin: Any) -> None:
        await plugin.start(self)
        self.plugins.setdefault(plugin.name, plugin)


def test_a_recorder_that_cannot_start_says_why_once_and_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = zlib.compress(json.dumps({"": "", "collector": "", "collector.plugin": "1 / 0"}).encode())
    monkeypatch.setattr(bundle, "payload", lambda: broken)
    scheduler = Scheduler()

    asyncio.run(scheduler.register(pickle.loads(pickle.dumps(ShippedPlugin({})))))
    answer = scheduler.handlers["daskscope"](action="hello")

    assert answer["status"] == "refused"
    assert "ZeroDivisionError" in answer["why"]
    assert (scheduler.handlers, scheduler.plugins) == ({}, {})


RECORDER = """
import asyncio

class Plugin:
    name = "daskscope"

    def __init__(self):
        self.scheduler = None

    async def start(self, scheduler):
        await asyncio.sleep(0)
        if "daskscope" not in scheduler.handlers:
            self.scheduler, scheduler.handlers["daskscope"] = scheduler, self

    def take_over(self, scheduler):
        scheduler.plugins["daskscope"] = self

def create(settings):
    return Plugin()
"""


def test_of_two_recorders_started_at_once_the_one_that_records_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = zlib.compress(json.dumps({"": "", "collector": "", "collector.plugin": RECORDER}).encode())
    monkeypatch.setattr(bundle, "payload", lambda: payload)
    scheduler = Scheduler()
    shipped = [pickle.loads(pickle.dumps(ShippedPlugin({}))) for _ in range(3)]

    async def main() -> None:
        await asyncio.gather(*map(scheduler.register, shipped))

    # The loop ends after what was put off to its next turn.
    asyncio.run(main())

    assert scheduler.plugins["daskscope"] is scheduler.handlers["daskscope"]
