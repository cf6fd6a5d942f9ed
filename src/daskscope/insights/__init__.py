"""Rules that look at the facts of a run and yield findings: one rule per module, listed in ``rules``."""
