"""Functions for notebooks and scripts: record work, write reports, open recordings, log metrics, query a server."""
