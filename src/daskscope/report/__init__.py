"""The report: one recording as one file that opens anywhere, and reports of Dask's own read back into recordings."""
