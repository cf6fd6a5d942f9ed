"""Processes of the server: work with limits on memory and time, and work that needs a core of its own."""
