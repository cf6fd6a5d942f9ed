"""The agent, which runs inside each worker."""
