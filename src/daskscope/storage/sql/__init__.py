"""Ask questions about recorded tables in SQL."""
