"""Rules for the sources that no linter checks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import mypy
import pytest
from tests.helpers.syntax import syntax_tree

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "daskscope"
#: The modules that are shipped as source to schedulers and workers.
SHIPPED = sorted(
    [
        PACKAGE / "model" / "columns.py",
        PACKAGE / "model" / "libraries.py",
        PACKAGE / "model" / "states.py",
        PACKAGE / "model" / "tables.py",
        *(PACKAGE / "wire" / f"{name}.py" for name in ("layout", "encode", "encode_keys")),
        *PACKAGE.glob("collector/**/*.py"),
    ]
)
#: The packages installed wherever a scheduler or a worker runs.
ALWAYS_THERE = frozenset(("distributed", "dask", "psutil", "tornado"))
OLDEST_PYTHON = (3, 10)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_the_rules_find_sources_to_check() -> None:
    assert {"model/tables.py", "wire/encode.py", "collector/__init__.py"} <= {name_of(path) for path in SHIPPED}


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/unit/test_*.py")), ids=lambda path: path.name)
def test_no_unit_test_sleeps(path: Path) -> None:
    calls = [node.func for node in ast.walk(syntax_tree(path.read_text())) if isinstance(node, ast.Call)]
    names = [ast.unparse(call) for call in calls]

    # Only a fake clock may sleep: that takes no time.
    assert [name for name in names if name in ("sleep", "time.sleep", "asyncio.sleep")] == []


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_shipped_modules_are_written_for_the_oldest_python(path: Path) -> None:
    syntax_tree(path.read_text(), feature_version=OLDEST_PYTHON)


def test_no_module_imports_what_the_oldest_python_lacks() -> None:
    # mypy knows which version added each module of the standard library.
    lines = (Path(mypy.__file__).parent / "typeshed" / "stdlib" / "VERSIONS").read_text().splitlines()
    listed = (line.split("#")[0].partition(":") for line in lines if ":" in line.split("#")[0])
    since = {name: tuple(map(int, versions.partition("-")[0].split("."))) for name, _, versions in listed}
    newer = {name for name, version in since.items() if version > OLDEST_PYTHON}
    assert {"tomllib", "importlib.resources.abc"} <= newer

    found = {name_of(path): newer.intersection(unguarded_imports(path)) for path in PACKAGE.rglob("*.py")}
    assert {name: modules for name, modules in found.items() if modules} == {}


def unguarded_imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, except below a condition on the version or on type checking."""
    waiting: list[ast.AST] = [syntax_tree(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and (
            "TYPE_CHECKING" in ast.unparse(node.test) or "version" in ast.unparse(node.test)
        ):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        waiting += ast.iter_child_nodes(node)


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_shipped_modules_import_only_installed_packages(path: Path) -> None:
    allowed = sys.stdlib_module_names | ALWAYS_THERE

    assert [name for name in absolute_imports(path) if name.split(".")[0] not in allowed] == []


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_shipped_modules_import_only_each_other(path: Path) -> None:
    shipped = set(SHIPPED) | {path.parent for path in SHIPPED}

    assert [
        str(target) for target in relative_imports(path) if not ({target, target.with_suffix(".py")} & shipped)
    ] == []


def absolute_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(syntax_tree(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def relative_imports(path: Path) -> Iterator[Path]:
    """Yield the files or folders that a module imports from; ``from . import name`` may import a file."""
    for node in ast.walk(syntax_tree(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            files = [base / alias.name for alias in node.names if (base / f"{alias.name}.py").exists()]
            yield from files or [base]
