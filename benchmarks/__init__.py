"""The measurements behind the claims. Run them all with ``scripts/bench``.

Every figure is a ratio to its peer in the same run, or a count; minima and p10 of interleaved segments, CPU time rather than
wall time: the machines that run this are small, shared and noisy.
"""
