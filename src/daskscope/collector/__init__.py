"""The code that runs inside a scheduler or a worker.

The source of this package is shipped to clusters where daskscope is not installed (see ``bundle``). So its modules use only the
standard library and ``distributed`` with its dependencies, import each other relatively, and never raise into their host.
"""
