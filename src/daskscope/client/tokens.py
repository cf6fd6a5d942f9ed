"""Tokens of the server, from Python; the same as ``daskscope token``."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from daskscope.client.server import find_server
from daskscope.errors import DaskscopeError


def create_api_token(
    *, label: str | None = None, days_to_expire: int | None = None, scopes: list[str] | None = None
) -> dict[str, Any]:
    """Make a token; its secret is in ``token`` and is shown only now."""
    body = {"label": label or "", "days_to_expire": days_to_expire}
    result: dict[str, Any] = find_server().call(
        "POST", "tokens", body={**body, **({"scopes": scopes} if scopes else {})}
    )
    return result


def list_api_tokens(include_inactive: bool = False) -> dict[str, dict[str, Any]]:  # noqa: FBT001, FBT002 (the known order)
    """Your tokens, by identifier."""
    items = find_server().get("tokens", include_inactive=str(include_inactive).lower())["items"]
    return {str(item["id"]): item for item in items}


def revoke_api_token(*, identifier: str | None = None, label: str | None = None) -> dict[str, Any]:
    """Revoke one token, named by its identifier or by its label; ``recorders`` says how many made from it ended with it."""
    if (identifier is None) == (label is None):
        raise DaskscopeError("Name the token by identifier= or by label=, one of them.")
    if identifier is None:
        mine = [key for key, item in list_api_tokens().items() if item["label"] == label]
        if len(mine) != 1:
            raise DaskscopeError(f"{len(mine)} tokens have the label {label!r}. Name one by identifier=.")
        identifier = mine[0]
    result: dict[str, Any] = find_server().call("DELETE", f"tokens/{quote(identifier, safe='')}")
    return result
