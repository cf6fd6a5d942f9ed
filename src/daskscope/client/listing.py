"""A list of dicts that shows itself as a table, and becomes a DataFrame when asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from daskscope.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd

#: Rows of the table in a notebook; the list has them all.
MOST_ROWS = 60


class Listing(list[dict[str, Any]]):
    """What a server listed: an ordinary list of plain dicts."""

    def __init__(
        self, items: Iterable[dict[str, Any]] = (), columns: Sequence[str] = (), empty: str = "Nothing."
    ) -> None:
        super().__init__(items)
        #: What the table shows; the dicts have more.
        self.columns = tuple(columns)
        self.empty = empty

    def to_pandas(self) -> pd.DataFrame:
        """As a DataFrame: one row an item, nested values in columns of their own."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        return pd.json_normalize(list(self), max_level=1)

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{escape(self.empty)}</p>"
        columns = self.columns or tuple(self[0])
        head = "".join(f"<th style='text-align:left'>{escape(name.replace('_', ' '))}</th>" for name in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_cell(item.get(name))}</td>' for name in columns)}</tr>" for item in self[:MOST_ROWS]
        )
        more = f"<p>{MOST_ROWS:,} of {len(self):,} shown.</p>" if len(self) > MOST_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        safe = escape(value, quote=True)
        return f"<a href='{safe}' target='_blank' rel='noreferrer'>{safe}</a>"
    if isinstance(value, float):
        return f"{value:,.3g}"
    text = "" if value is None else str(value)
    return escape(text if len(text) <= 100 else f"{text[:97]}…")
