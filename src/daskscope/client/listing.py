"""A list of dicts that displays as a table in notebooks and converts to a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from daskscope.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd

#: Rows displayed in a notebook; the list has all of them.
MAX_ROWS = 60
#: Rows and characters per cell in a terminal.
MAX_LINES = 20
MAX_CELL = 40


class Listing(list[dict[str, Any]]):
    """The result of a list function: an ordinary list of plain dicts."""

    def __init__(
        self, items: Iterable[dict[str, Any]] = (), columns: Sequence[str] = (), empty: str = "Nothing."
    ) -> None:
        super().__init__(items)
        #: Columns of the displayed table; the dicts have more keys.
        self.columns = tuple(columns)
        self.empty = empty

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per item and nested values in their own columns."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        return pd.json_normalize(list(self), max_level=1)

    def __repr__(self) -> str:
        """Return a table of the first rows: the dicts themselves have up to 50 keys."""
        if not self:
            return self.empty
        columns = [name for name in self.columns or tuple(self[0]) if name != "url"]
        rows = [[_text(item.get(name)) for name in columns] for item in self[:MAX_LINES]]
        widths = [max(map(len, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)]
        table = [[name.replace("_", " ") for name in columns], *rows]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        more = [f"… {len(self) - MAX_LINES:,} more"] if len(self) > MAX_LINES else []
        return "\n".join([*lines, *more])

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{escape(self.empty)}</p>"
        columns = self.columns or tuple(self[0])
        head = "".join(f"<th style='text-align:left'>{escape(name.replace('_', ' '))}</th>" for name in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_cell(item.get(name))}</td>' for name in columns)}</tr>" for item in self[:MAX_ROWS]
        )
        more = f"<p>{MAX_ROWS:,} of {len(self):,} shown.</p>" if len(self) > MAX_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _text(value: Any) -> str:
    """Return a value as a short text for a cell."""
    if isinstance(value, float):
        return f"{value:,.3g}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _cell(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        safe = escape(value, quote=True)
        return f"<a href='{safe}' target='_blank' rel='noreferrer'>{safe}</a>"
    if isinstance(value, float):
        return f"{value:,.3g}"
    text = "" if value is None else str(value)
    return escape(text if len(text) <= 100 else f"{text[:97]}…")
