"""Check passwords, and refuse too many attempts."""

from __future__ import annotations

import ipaddress

from starlette.concurrency import run_in_threadpool

from daskscope.server.errors import too_many
from daskscope.server.http.audit import address_of, audit_server
from daskscope.server.http.routing import Call
from daskscope.server.pools import NO_ACCOUNT, PASSWORD
from daskscope.storage.base.archive import Transaction
from daskscope.storage.people import users

#: Wrong passwords within ``users.LOCK_US`` before further attempts are refused: from one address, and for one user from any
#: address. The second is larger, or ten guesses by a stranger would lock a user out.
MAX_ATTEMPTS, MAX_PER_USER = 10, 100
#: Prefix length of the network that one customer of a provider has at least.
IPV6_BITS = 64


async def check_password(call: Call, user: str, password: str) -> tuple[int, str]:
    """Return the number of the user with this password, else 0, and its hash. Refuse too many attempts."""
    number, stored, at_limit = await run_in_threadpool(_stored_hash, call, user)
    right = await call.services.pools.run(PASSWORD, NO_ACCOUNT, users.password_matches, password, stored)
    if not (right and number):
        await run_in_threadpool(_record_failure, call, user if number else "", at_limit)
        return 0, ""
    await run_in_threadpool(_forget_attempts, call, user)
    return number, stored


def caller_address(call: Call) -> str:
    """Return the subject under which attempts from the caller's address are counted."""
    return f"address {network_of(address_of(call))}"


def network_of(address: str) -> str:
    """Return an IPv4 address itself, and the /64 network of an IPv6 address: one customer has all its addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_BITS), strict=False))


def _stored_hash(call: Call, user: str) -> tuple[int, str, list[str]]:
    limits = {f"user {user}": MAX_PER_USER, caller_address(call): MAX_ATTEMPTS}
    with call.services.archive.write() as tx:
        at_limit = count_attempt(tx, limits)
        return *users.stored_password(tx, user), at_limit


def _record_failure(call: Call, user: str, at_limit: list[str]) -> None:
    """Record a wrong password. Not under the given name unless it is a user: people type passwords there, too."""
    with call.services.archive.write() as tx:
        audit_server(call, tx, "sign-in-failed", user or "unknown user")
        for subject in at_limit:
            kind, _, name = subject.partition(" ")
            named = kind == "address" or bool(user)
            audit_server(call, tx, "locked-out", name if named else "unknown user", kind=kind)


def count_attempt(tx: Transaction, limits: dict[str, int]) -> list[str]:
    try:
        return users.count_attempt(tx, limits)
    except users.TooManyAttempts as error:
        raise too_many(str(error), users.LOCK_US / 1e6) from None


def _forget_attempts(call: Call, user: str) -> None:
    with call.services.archive.write() as tx:
        users.forget_attempts(tx, f"user {user}")
        users.forget_attempt(tx, caller_address(call))
