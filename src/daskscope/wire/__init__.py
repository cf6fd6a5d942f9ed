"""Batches to bytes and back: the only place that knows the format.

``layout`` and the two ``encode`` modules travel into schedulers and workers and use the standard library alone.
``file`` and the three ``decode`` modules read into numpy columns. The format is described in ``docs/wire-format.md``.
"""
