"""Tokens: make, list and revoke them; and the one-cluster token a recorder is given."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from daskscope.server.contract import Token
from daskscope.server.failure import forbidden, not_found
from daskscope.server.names import check_cluster, is_number
from daskscope.server.routing import Call, Route
from daskscope.server.views import moment
from daskscope.storage import tokens as store
from daskscope.units import DAY

#: A recorder's token; it is made anew each time a cluster is registered.
INGEST_DAYS = 90


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    scopes: tuple[Literal["ingest", "read", "write", "admin"], ...] = ("ingest", "read", "write")
    days_to_expire: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None


class IngestToken(msgspec.Struct, forbid_unknown_fields=True):
    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    include_inactive: bool = False
    everyone: bool = False


def create_token(call: Call) -> dict[str, Any]:
    body: NewToken = call.body
    scopes = frozenset(body.scopes)
    if not scopes <= call.identity.scopes:
        raise forbidden("A token cannot allow more than you may do yourself in this account.")
    expires = call.now_us + body.days_to_expire * DAY if body.days_to_expire else 0
    # A token that ends cannot be made to last by having it make another.
    if call.identity.expires_us:
        expires = min(expires or call.identity.expires_us, call.identity.expires_us)
    with call.services.database.write() as connection:
        number, secret = store.create_token(
            connection, account=call.account.id, user=call.identity.user, scopes=scopes, label=body.label,
            expires_us=expires, now_us=call.now_us,
        )  # fmt: skip
    scopes_view = [scope for scope in store.SCOPES if scope in scopes]
    return {
        "id": number,
        "token": secret,
        "account": call.account.name,
        "scopes": scopes_view,
        "expires": moment(expires),
    }


def create_ingest_token(call: Call) -> dict[str, Any]:
    """What travels to a scheduler: it may write to that cluster, and nothing else."""
    if call.identity.cluster:
        raise forbidden("A recorder's token cannot make others.")
    check_cluster(call.body.cluster)
    expires = call.now_us + INGEST_DAYS * DAY
    # As above: it does not outlive the token that made it.
    expires = min(expires, call.identity.expires_us or expires)
    with call.services.database.write() as connection:
        _, secret = store.create_token(
            connection, account=call.account.id, user=call.identity.user, scopes=frozenset({"ingest"}),
            label=f"cluster {call.body.cluster}", cluster=call.body.cluster,
            expires_us=expires, now_us=call.now_us, parent=call.identity.token,
        )  # fmt: skip
    return {"token": secret, "account": call.account.name, "server_us": call.services.clock()}


def list_tokens(call: Call) -> dict[str, Any]:
    query: ListQuery = call.query
    if query.everyone and "admin" not in call.identity.scopes:
        raise forbidden("Only an owner of the account sees the tokens of others.")
    with call.services.database.read() as connection:
        rows = store.list_tokens(
            connection, call.account.id, None if query.everyone else call.identity.user,
            include_inactive=query.include_inactive, now_us=call.now_us,
        )  # fmt: skip
    return {"items": [_view(row) for row in rows]}


def _view(row: dict[str, Any]) -> Token:
    return {
        "id": row["id"],
        "hint": row["hint"],
        "label": row["label"],
        "scopes": row["scopes"],
        "user": row["user"],
        "expired": row["expired"],
        "recorders": row["recorders"],
        "created": moment(row["created_us"]),
        "expires": moment(row["expires_us"]),
        "used": moment(row["used_us"]),
        "revoked": moment(row["revoked_us"]),
    }


def revoke_token(call: Call) -> dict[str, Any]:
    """It ends with the tokens recorders were given for it; a batch they send within half a minute may still be taken elsewhere."""
    everyone = "admin" in call.identity.scopes
    number = call.path("token")
    with call.services.database.write() as connection:
        user = None if everyone else call.identity.user
        found = is_number(number)
        gone = store.revoke_token(connection, call.account.id, user, int(number), call.now_us) if found else None
    call.cache.clear()
    if gone is None:
        raise not_found("such token")
    return {"revoked": int(number), "recorders": gone.recorders}


ROUTES = [
    Route("GET", "/api/v1/tokens", list_tokens, "read", "Your tokens in this account", query=ListQuery),
    Route("POST", "/api/v1/tokens", create_token, "write", "Make a token; its secret is shown once", body=NewToken, status=201),
    Route("DELETE", "/api/v1/tokens/{token}", revoke_token, "write", "Revoke a token"),
    Route(
        "POST", "/api/v1/ingest-tokens", create_ingest_token, "ingest", "A token for the recorder of one cluster",
        body=IngestToken, status=201,
    ),
]  # fmt: skip
