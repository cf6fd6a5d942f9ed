"""Rules for the sources that no linter checks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = [ast.unparse(call) for call in calls]

    # Only a fake clock may sleep: that takes no time.
    assert [name for name in names if name in ("sleep", "time.sleep", "asyncio.sleep")] == []


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_shipped_modules_are_written_for_the_oldest_python(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)


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
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def relative_imports(path: Path) -> Iterator[Path]:
    """Yield the files or folders that a module imports from; ``from . import name`` may import a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            files = [base / alias.name for alias in node.names if (base / f"{alias.name}.py").exists()]
            yield from files or [base]
