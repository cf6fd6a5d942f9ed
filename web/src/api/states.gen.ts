// Written by scripts/gen-types from src/daskscope/model/states.py. Change it there.

export type RunState = "running" | "idle" | "finished" | "failed" | "unfinished" | "interrupted" | "lost";

export type ErrorState = "open" | "resolved" | "ignored" | "regressed";

export type Verdict = "" | "closed" | "retired" | "restarted" | "memory kill" | "vanished" | "lost connection";

export type AuditAction = "setup" | "sign-in" | "sign-in-failed" | "locked-out" | "sign-out" | "session-ended" | "device-approved" | "device-denied" | "password-changed" | "password-reset" | "sign-in-link-created" | "token-created" | "token-revoked" | "user-created" | "user-disabled" | "user-enabled" | "admin-granted" | "admin-removed" | "account-created" | "member-added" | "member-removed" | "role-changed" | "settings-changed" | "report-created" | "report-shared" | "report-deleted" | "baseline-deleted" | "cluster-changed" | "cluster-closed" | "cluster-deleted";

export type Role = "viewer" | "member" | "owner";

export type Scope = "ingest" | "read" | "write" | "admin" | "tokens" | "accounts";

export const RUN_STATES: readonly RunState[] = ["running", "idle", "finished", "failed", "unfinished", "interrupted", "lost"];

export const LIVE_STATES: readonly RunState[] = ["running", "idle"];

export const ERROR_STATES: readonly ErrorState[] = ["open", "resolved", "ignored", "regressed"];

export const LOST_VERDICTS: readonly Verdict[] = ["memory kill", "vanished", "lost connection"];

export const AUDIT_ACTIONS: readonly AuditAction[] = ["setup", "sign-in", "sign-in-failed", "locked-out", "sign-out", "session-ended", "device-approved", "device-denied", "password-changed", "password-reset", "sign-in-link-created", "token-created", "token-revoked", "user-created", "user-disabled", "user-enabled", "admin-granted", "admin-removed", "account-created", "member-added", "member-removed", "role-changed", "settings-changed", "report-created", "report-shared", "report-deleted", "baseline-deleted", "cluster-changed", "cluster-closed", "cluster-deleted"];

export const ROLES: readonly Role[] = ["viewer", "member", "owner"];

export const VERDICT_TEXT: Readonly<Record<string, string>> = { "vanished": "lost" };
