"""The recorder, which runs inside the scheduler: its plugin and the parts of it."""
