"""Benchmarks behind the performance claims. Run them all with ``scripts/bench``.

Every figure is a count, or a ratio to a reference in the same run. They are minima and p10 of interleaved segments, in CPU
time rather than wall time, because the machines that run them are small, shared and noisy.
"""
