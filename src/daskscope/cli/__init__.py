"""The command line: one module per command, each with ``configure(parser)`` and ``run(args) -> int``.

Commands print through ``output`` (the only writer to standard output) and compute nothing themselves. They pass every text
of a recording through ``terminal.escape`` first, so that a task key cannot move the cursor.
"""
