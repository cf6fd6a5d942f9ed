"""The vocabulary: what a recording consists of.

Only definitions and dumb containers live here. No I/O, no formatting for people, no knowledge of bytes.
``tables`` travels into other people's schedulers and therefore uses the standard library alone;
``table`` and ``recording`` hold numpy columns and stay on the reading side.
"""
