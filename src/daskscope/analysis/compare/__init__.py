"""Compare runs, and tell noise from change."""
