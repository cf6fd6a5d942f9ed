"""What runs inside a scheduler or a worker.

The source of this package travels to clusters where daskscope is not installed (see ``bundle``), so its modules use the
standard library and what ``distributed`` brings, import each other relatively, and never raise into their host.
"""
