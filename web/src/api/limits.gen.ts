// Written by scripts/gen-types, which lists where they come from.

export const MAX_PREDICTED_COUNTS = 8;
export const MAX_PREDICTED_WORKERS = 10000;
export const MAX_PREDICTED_THREADS = 1000;
export const MIN_PASSWORD = 10;
export const TOKEN_DAYS = 90;
export const AUDIT_DAYS = 400;
export const LIVE_WINDOW_S = 600;
