"""Rows of runs: from batches to files, and back."""
