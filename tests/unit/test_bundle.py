"""The bundle loads under a private name, refers to nothing by name, and says why if it cannot load."""

from __future__ import annotations

import ast
import asyncio
import json
import pickle
import pickletools
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers.syntax import syntax_tree

from daskscope.collector import bundle
from daskscope.collector.bundle import PresentFunction, ShippedFunction, ShippedPlugin

START = "collector.worker.agent:start_agent"
PACKAGE = Path(bundle.__file__).parents[1]


def names_in(data: bytes) -> set[str]:
    """Return the names that a pickle looks up."""
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
def test_the_pickle_refers_to_nothing_but_eval(shipped: object) -> None:
    assert names_in(pickle.dumps(shipped)) == {"builtins.eval"}


def test_a_bundle_stays_small() -> None:
    # It is sent once to the scheduler and once to every worker; on a slow link of 1 MB/s, that takes 0.12 s.
    assert len(pickle.dumps(ShippedPlugin({}))) < 120_000
    assert len(pickle.dumps(PresentFunction(START))) < 500


def code_of(source: str) -> str:
    """Return the syntax tree of a source with the line of each node, and with empty docstrings."""
    tree = syntax_tree(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
        if isinstance(node, (ast.expr, ast.stmt)):
            node.col_offset, node.end_col_offset, node.end_lineno = 0, 0, node.lineno
    return ast.dump(tree, include_attributes=True)


def test_the_bundle_has_the_same_code_in_the_same_lines_without_comments_and_docstrings() -> None:
    for name, source in bundle.sources().items():
        if name:
            original = (PACKAGE / Path(*name.split("."))).with_suffix(".py")
            original = original if original.exists() else original.with_suffix("") / "__init__.py"
            assert code_of(source) == code_of(original.read_text())


def test_every_module_of_the_bundle_finds_its_imports_in_the_bundle() -> None:
    sources = bundle.sources()
    for name, source in sources.items():
        for node in ast.walk(syntax_tree(source)):
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
    # There is no worker, so the agent refuses, which shows that it was loaded.
    assert ran.stdout.decode().splitlines() == ["Shipped daskscope True refused", ""]


def test_a_shipped_bundle_ships_itself_unchanged() -> None:
    root = bundle.private_root(bundle.payload())
    asyncio.run(pickle.loads(pickle.dumps(ShippedFunction("collector.bundle:payload")))())
    shipped = sys.modules[f"{root}.collector.bundle"]

    assert shipped is not bundle
    assert shipped.payload() == bundle.payload()
    assert shipped.private_root(shipped.payload()) == root


def test_another_version_of_the_bundle_has_another_name() -> None:
    assert bundle.private_root(b"one") != bundle.private_root(b"two")


def packed(module: str, source: str) -> bytes:
    """Return a bundle with one module, inside empty packages."""
    package, _, _ = module.rpartition(".")
    return zlib.compress(json.dumps({"": "", "collector": "", package: "", module: source}).encode())


def test_a_bundle_that_does_not_load_says_why_instead_of_raising(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = zlib.compress(
        json.dumps(
            dict.fromkeys(("", "collector", "collector.worker"), "")
            | {"collector.worker.agent": "import nothing_of_this_name"}
        ).encode()
    )
    monkeypatch.setattr(bundle, "payload", lambda: broken)

    function = pickle.loads(pickle.dumps(ShippedFunction(START)))

    assert "nothing_of_this_name" in asyncio.run(function(dask_worker=None, settings={}))


def test_a_function_that_was_never_shipped_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "payload", lambda: b"never shipped")

    assert pickle.loads(pickle.dumps(PresentFunction(START)))(dask_worker=None, settings={}) == "absent"


class Scheduler(SimpleNamespace):
    """The parts of a scheduler that registering a plugin needs."""

    def __init__(self) -> None:
        super().__init__(handlers={}, plugins={})

    async def register(self, plugin: Any) -> None:
        await plugin.start(self)
        self.plugins.setdefault(plugin.name, plugin)


def test_a_recorder_that_cannot_start_says_why_once_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = packed("collector.scheduler.plugin", "1 / 0")
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


def test_if_two_recorders_start_at_once_the_one_that_records_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = packed("collector.scheduler.plugin", RECORDER)
    monkeypatch.setattr(bundle, "payload", lambda: payload)
    scheduler = Scheduler()
    shipped = [pickle.loads(pickle.dumps(ShippedPlugin({}))) for _ in range(3)]

    async def main() -> None:
        await asyncio.gather(*map(scheduler.register, shipped))

    # Let the loop run the callbacks scheduled for its next iteration.
    asyncio.run(main())

    assert scheduler.plugins["daskscope"] is scheduler.handlers["daskscope"]
