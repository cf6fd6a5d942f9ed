"""The values that states and verdicts can have, defined once. ``scripts/gen-types`` writes them for the web app too."""

from __future__ import annotations

from typing import Literal, get_args

#: The life of a cluster. A lost one is no longer heard from.
ClusterState = Literal["running", "idle", "finished", "lost"]
CLUSTER_STATES: tuple[ClusterState, ...] = ("running", "idle", "finished", "lost")

#: How the work of a cluster that has ended went; empty while it runs or if it is lost.
ClusterOutcome = Literal["", "succeeded", "failed", "lost", "cancelled", "nothing ran"]

ComputationState = Literal["running", "done", "erred", "cancelled", "lost"]

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

#: What a token allows. ``tokens`` allows to create further tokens; no token has it unless it is asked for.
Scope = Literal["ingest", "read", "write", "admin", "tokens"]
SCOPES: tuple[Scope, ...] = ("ingest", "read", "write", "admin", "tokens")

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
