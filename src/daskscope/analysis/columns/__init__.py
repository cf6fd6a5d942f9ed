"""Numbers in columns: groups, intervals and bins."""
