"""Encode batches to bytes and decode them; only this package knows the wire format.

``layout`` and the two ``encode`` modules are shipped to schedulers and workers, so they use the standard library alone.
``file`` and the three ``decode`` modules read into numpy columns. The format is described in ``docs/reference/wire-format.md``.
"""
