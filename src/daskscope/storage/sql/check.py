"""Check a query before it is run: one SELECT, of recorded tables, with functions that neither run SQL texts nor read files.

DuckDB's parser itself can take gigabytes: 8 kB of opened parentheses do. On a server only a process with limits calls this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from daskscope.errors import DaskscopeError
from daskscope.model.tables import TABLES

#: Maximum characters of a query, and brackets inside each other.
MAX_QUERY, MAX_NESTING = 20_000, 200
#: Functions in FROM. Others read files or SQL texts, or show how DuckDB is set up.
TABLE_FUNCTIONS = frozenset(
    {
        "generate_series", "histogram", "histogram_values", "json_each", "json_tree", "range", "regexp_split_to_table",
        "repeat", "repeat_row", "unnest",
    }
)  # fmt: skip
#: Other functions that take or return SQL texts, show how DuckDB is set up, change something, or only wait.
REFUSED_FUNCTIONS = frozenset(
    {
        "create_sort_key", "current_connection_id", "current_query", "current_query_id", "current_setting",
        "current_transaction_id", "currval", "getenv", "getvariable", "in_search_path", "json_deserialize_sql",
        "json_execute_serialized_sql", "json_serialize_plan", "json_serialize_sql", "nextval",
        "parse_duckdb_log_message", "pg_get_constraintdef", "pg_get_expr", "pg_get_viewdef", "pg_sleep", "query",
        "query_table", "set_config", "sleep_ms", "txid_current", "write_log",
    }
)  # fmt: skip
#: Texts, quoted names and comments, in which brackets mean nothing.
QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)
#: Parts of a parsed query that show settings and databases instead of a table's columns.
SPECIAL = "SHOW_SPECIAL"


class SqlError(DaskscopeError):
    """A query is invalid, not allowed, or exceeds a limit."""


@dataclass(frozen=True)
class CheckedQuery:
    """A query that may run, and the recorded tables that it reads."""

    text: str
    tables: frozenset[str]


@dataclass
class _Names:
    """The names in a parsed query, in lower case."""

    #: Catalog, schema and name of tables.
    tables: set[tuple[str, str, str]] = field(default_factory=set)
    #: Names that WITH defines.
    queries: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    table_functions: set[str] = field(default_factory=set)
    is_special: bool = False


def check_text(query: str) -> None:
    """Refuse a query that is too long or nested too deeply to be parsed."""
    if len(query) > MAX_QUERY:
        raise SqlError(f"The query is longer than {MAX_QUERY:,} characters.")
    depth = deepest = 0
    for character in QUOTED.sub(" ", query):
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        raise _too_deep()


def check_query(connection: Any, query: str) -> CheckedQuery:
    """Return a query that may run. The connection may not have any tables or rights."""
    check_text(query)
    (text,) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    if parsed["error"] and parsed["error_type"] == "parser":
        raise SqlError(f"The query is not valid: {' '.join(parsed['error_message'].split())}.")
    if parsed["error"] and parsed["error_type"] == "out of memory":
        raise SqlError("The query is too complicated: parsing it needs too much memory.")
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise SqlError("Give one SELECT statement. Recordings cannot be changed.")
    names = _names(parsed)
    _check_functions(names)
    system = {str(name).lower() for (name,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
    return CheckedQuery(query, _check_tables(names, system))


def _too_deep() -> SqlError:
    return SqlError("The query is nested too deeply.")


def _check_functions(names: _Names) -> None:
    refused = (names.functions & REFUSED_FUNCTIONS) | (names.table_functions - TABLE_FUNCTIONS)
    if refused:
        raise SqlError(
            f"{min(refused)}() is not available. A query can only read the recorded tables: name them in FROM."
        )


def _check_tables(names: _Names, system: set[str]) -> frozenset[str]:
    """Return the recorded tables among the names. Refuse all others but those that WITH defines."""
    found = set[str]()
    for catalog, schema, name in names.tables:
        is_plain = catalog in ("", "memory") and schema in ("", "main")
        if is_plain and name in TABLES:
            found.add(name)
        elif name not in names.queries or name in system or catalog or schema:
            full = ".".join(part for part in (catalog, schema, name) if part)
            raise SqlError(
                f"There is no table {full[:100]}. A query can only read the recorded tables, not files or addresses."
            )
    if names.is_special:
        raise SqlError("SHOW is not available. DESCRIBE shows the columns of a table.")
    return frozenset(found)


def _names(parsed: Any) -> _Names:
    names = _Names()
    for node in _nodes(parsed):
        kind = node.get("type")
        if kind == "BASE_TABLE":
            names.tables.add((_text(node, "catalog_name"), _text(node, "schema_name"), _text(node, "table_name")))
        elif kind == "TABLE_FUNCTION":
            names.table_functions.add(_text(node.get("function") or {}, "function_name"))
        elif kind == "SHOW_REF":
            names.is_special |= node.get("show_type") == SPECIAL
        if "function_name" in node:
            names.functions.add(_text(node, "function_name"))
        for defined in (node.get("cte_map") or {}).get("map", ()):
            names.queries.add(_text(defined, "key"))
    return names


def _nodes(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a parsed query."""
    pending = [parsed]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _text(node: dict[str, Any], name: str) -> str:
    return str(node.get(name) or "").lower()
