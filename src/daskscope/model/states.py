"""The values that states and verdicts can have, defined once. ``scripts/gen-types`` writes them for the web app too."""

from __future__ import annotations

from typing import Literal, get_args

#: The state of a cluster, a computation or a recorded block. ``running`` and ``idle`` while it is alive; afterwards how it
#: ended: ``failed`` with failed tasks, ``unfinished`` if it closed before its work was done, ``interrupted`` if a user
#: stopped the work, and ``lost`` if nothing has been heard from it.
RunState = Literal["running", "idle", "finished", "failed", "unfinished", "interrupted", "lost"]
RUN_STATES: tuple[RunState, ...] = get_args(RunState)
LIVE_STATES: tuple[RunState, ...] = ("running", "idle")

#: The state of a computation by the value that recorders write. A recorder that closes writes open computations as lost.
COMPUTATION_STATES: dict[str, RunState] = {
    "running": "running",
    "done": "finished",
    "erred": "failed",
    "cancelled": "interrupted",
    "lost": "unfinished",
}

#: An error group that was resolved and occurs again is regressed.
ErrorState = Literal["open", "resolved", "ignored", "regressed"]
ERROR_STATES: tuple[ErrorState, ...] = ("open", "resolved", "ignored", "regressed")

#: Why a worker left; empty while it is there.
Verdict = Literal["", "closed", "retired", "restarted", "memory kill", "vanished", "lost connection"]
#: Verdicts of workers that did not leave on purpose.
LOST_VERDICTS: tuple[Verdict, ...] = ("memory kill", "vanished", "lost connection")
#: Words shown instead of a recorded verdict.
VERDICT_TEXT: dict[str, str] = {"vanished": "lost"}

#: A viewer can read, a member can also change things, an owner can also manage members.
Role = Literal["viewer", "member", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "member", "owner")

#: What a token allows. ``tokens`` allows to create further tokens; no token has it unless it is asked for. ``accounts`` allows
#: the rest in every account of its user, as far as the role there does; ``daskscope login`` asks for it.
Scope = Literal["ingest", "read", "write", "admin", "tokens", "accounts"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

#: What the audit log records.
AuditAction = Literal[
    "setup",
    "sign-in",
    "sign-in-failed",
    "locked-out",
    "sign-out",
    "session-ended",
    "device-approved",
    "device-denied",
    "password-changed",
    "password-reset",
    "sign-in-link-created",
    "token-created",
    "token-revoked",
    "user-created",
    "user-disabled",
    "user-enabled",
    "admin-granted",
    "admin-removed",
    "account-created",
    "member-added",
    "member-removed",
    "role-changed",
    "settings-changed",
    "report-created",
    "report-shared",
    "report-deleted",
    "baseline-deleted",
    "cluster-changed",
    "cluster-closed",
    "cluster-deleted",
]
AUDIT_ACTIONS: tuple[AuditAction, ...] = get_args(AuditAction)
