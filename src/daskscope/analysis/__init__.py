"""Turn the tables of a recording into numbers.

Pure functions that return frozen dataclasses: no I/O, no clock, no colours. Every number on a page, in a report or on the
command line is computed here, once. Rows are counted and summed by numpy, never in a loop: five million tasks are normal.
"""
