"""No module and no package imports itself by way of others, not even with an import inside of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.syntax import syntax_tree

PACKAGE = Path(__file__).parent.parent.parent / "src" / "daskscope"


def module_of(path: Path) -> str:
    parts = ["daskscope", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, modules: frozenset[str]) -> Iterator[str]:
    """Yield the modules that a file imports anywhere. Imports of parent packages are left out: they are always loaded."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node in runtime_nodes(syntax_tree(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                found = f"{base}.{alias.name}"
                yield found if found in modules else base


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without the imports that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from runtime_nodes(node)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    paths = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    modules = frozenset(paths)
    return {
        name: {other for other in imports_of(path, modules) if other in modules and not name.startswith(f"{other}.")}
        for name, path in paths.items()
    }


def siblings(graph: dict[str, set[str]], parent: str) -> dict[str, set[str]]:
    """Return which modules and packages directly in a package import which others, with everything that packages contain."""
    depth = parent.count(".") + 2
    inside: dict[str, set[str]] = {}
    for name, others in graph.items():
        if name.startswith(f"{parent}."):
            mine = ".".join(name.split(".")[:depth])
            found = {".".join(other.split(".")[:depth]) for other in others if other.startswith(f"{parent}.")}
            inside.setdefault(mine, set()).update(found - {mine})
    return inside


def test_no_module_is_part_of_a_cycle() -> None:
    graph = imports()
    assert len(graph) > 100
    assert cycles(graph) == []


def test_no_package_is_part_of_a_cycle() -> None:
    graph = imports()
    parents = sorted({module_of(path) for path in PACKAGE.rglob("__init__.py")})
    assert {"daskscope", "daskscope.server", "daskscope.storage"} <= set(parents)
    assert {parent: found for parent in parents if (found := cycles(siblings(graph, parent)))} == {}


def test_a_cycle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}

    assert cycles(graph) == [["a", "b", "c"]]


def test_a_cycle_of_packages_is_found() -> None:
    graph = {"a.b.one": {"a.c.one"}, "a.c.one": set(), "a.c.two": {"a.b.two"}, "a.b.two": set()}

    assert cycles(graph) == []
    assert cycles(siblings(graph, "a")) == [["a.b", "a.c"]]
