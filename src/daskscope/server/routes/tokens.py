"""Tokens: create, list and revoke them, and the one-cluster tokens of recorders."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from daskscope.model.states import SCOPES, Scope
from daskscope.server.contract import Token
from daskscope.server.errors import forbidden, not_found
from daskscope.server.http.audit import audit
from daskscope.server.http.parameters import check_cluster, is_number
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import moment
from daskscope.storage.people import tokens as store
from daskscope.units import DAY


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    scopes: tuple[Scope, ...] = ("ingest", "read", "write")
    #: 0 means never; None means the default.
    days_to_expire: Annotated[int, msgspec.Meta(ge=0, le=3650)] | None = None


class IngestToken(msgspec.Struct, forbid_unknown_fields=True):
    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class TokensQuery(msgspec.Struct, forbid_unknown_fields=True):
    include_inactive: bool = False
    everyone: bool = False


def create_token(call: Call) -> dict[str, Any]:
    body: NewToken = call.body
    scopes = frozenset(body.scopes)
    if not scopes <= call.identity.scopes:
        raise forbidden("A token cannot have scopes that you do not have in this account.")
    days = store.DEFAULT_DAYS if body.days_to_expire is None else body.days_to_expire
    expires = call.now_us + days * DAY if days else 0
    # A token must not extend its own life by creating another one.
    if call.identity.expires_us:
        expires = min(expires or call.identity.expires_us, call.identity.expires_us)
    with call.services.archive.write() as tx:
        number, secret = store.create_token(
            tx, account=call.account.id, user=call.identity.user, scopes=scopes, label=body.label,
            expires_us=expires, parent=call.identity.token)  # fmt: skip
        scopes_view = [scope for scope in SCOPES if scope in scopes]
        audit(call, tx, "token-created", body.label, id=number, scopes=scopes_view, expires=moment(expires))
    return {
        "id": number,
        "token": secret,
        "account": call.account.name,
        "scopes": scopes_view,
        "expires": moment(expires),
    }


def create_ingest_token(call: Call) -> dict[str, Any]:
    """Create the token that is sent to a scheduler. It can only write to this cluster."""
    if call.identity.cluster:
        raise forbidden("A recorder's token cannot create tokens.")
    check_cluster(call.body.cluster)
    expires = call.now_us + store.INGEST_US
    # As above, until the recorder uses it: it is renewed then.
    expires = min(expires, call.identity.expires_us or expires)
    with call.services.archive.write() as tx:
        _, secret = store.create_token(
            tx, account=call.account.id, user=call.identity.user, scopes=frozenset({"ingest"}),
            label=f"cluster {call.body.cluster}", cluster=call.body.cluster,
            expires_us=expires, parent=call.identity.token)  # fmt: skip
    # What the caller's own token allows: a preloaded recorder refuses one that allows more than it needs.
    scopes = [scope for scope in SCOPES if scope in call.identity.scopes] if call.identity.token else []
    return {
        "token": secret,
        "account": call.account.name,
        "scopes": scopes,
        "server_us": call.services.archive.clock(),
    }


def list_tokens(call: Call) -> dict[str, Any]:
    query: TokensQuery = call.query
    if query.everyone and "admin" not in call.identity.scopes:
        raise forbidden("Only an owner of the account can list the tokens of others.")
    with call.services.archive.read() as tx:
        rows = store.list_tokens(
            tx, call.account.id, None if query.everyone else call.identity.user,
            include_inactive=query.include_inactive)  # fmt: skip
    return {"items": [_view(row) for row in rows]}


def _view(row: store.ListedToken) -> Token:
    return {
        "id": row.id,
        "hint": row.hint,
        "label": row.label,
        "scopes": row.scopes,
        "user": row.user,
        "expired": row.expired,
        "expires_soon": row.expires_soon,
        "recorders": row.recorders,
        "children": row.children,
        "created": moment(row.created_us),
        "expires": moment(row.expires_us),
        "used": moment(row.used_us),
        "revoked": moment(row.revoked_us),
    }


def revoke_token(call: Call) -> dict[str, Any]:
    """Revoke a token and all tokens created with it. Every token can revoke itself; others only with the scope ``write``."""
    everyone = "admin" in call.identity.scopes
    number = call.path("token")
    identity = call.identity
    if identity.kind == "token" and "write" not in identity.scopes and number != str(identity.token):
        raise forbidden("This token can only read, and revoke itself. Revoke others on the page Settings.")
    with call.services.archive.write() as tx:
        user = None if everyone else call.identity.user
        found = is_number(number)
        gone = store.revoke_token(tx, call.account.id, user, int(number)) if found else None
        if gone is None:
            raise not_found("such token")
        others = {"recorders": gone.recorders, "tokens": gone.children}
        audit(call, tx, "token-revoked", gone.label or gone.hint, id=int(number), **others)
    call.services.token_cache.clear()
    call.services.live.end_streams(gone.user, call.account.id)
    return {"revoked": int(number), **others}


ROUTES = [
    Route("GET", "/api/v1/tokens", list_tokens, "read", "List your tokens in this account", query=TokensQuery),
    Route("POST", "/api/v1/tokens", create_token, "tokens", "Create a token; its secret is shown once", body=NewToken, status=201),
    Route("DELETE", "/api/v1/tokens/{token}", revoke_token, "read", "Revoke a token and all tokens created with it"),
    Route(
        "POST", "/api/v1/ingest-tokens", create_ingest_token, "ingest", "Create a token for the recorder of one cluster",
        body=IngestToken, status=201,
    ),
]  # fmt: skip
