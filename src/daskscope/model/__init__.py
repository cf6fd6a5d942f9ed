"""The tables of a recording and their containers.

This package has no I/O, no formatting and no knowledge of the wire format. ``tables`` is shipped to users' schedulers and
therefore uses the standard library alone; ``table`` and ``recording`` hold numpy columns and are used by readers only.
"""
