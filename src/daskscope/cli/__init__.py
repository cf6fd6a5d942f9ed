"""The command line: one module per command, each with ``configure(parser)`` and ``run(args) -> int``.

Commands print through ``output`` (the only writer to standard output) and compute nothing themselves. Whatever a recording
says is passed through ``escape`` first: a task key must not be able to move the cursor.
"""
