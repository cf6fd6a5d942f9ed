"""Rules that look at the facts of a run and yield findings, in families; ``rules`` has their order."""
