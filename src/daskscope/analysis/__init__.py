"""Arithmetic over the tables of a recording: numbers in, numbers out.

Pure functions that return frozen dataclasses. No I/O, no clock, no colours; every number a page, a report or the command line
shows is computed here, once. Rows are counted and summed by numpy, never by a loop over them: five million tasks are normal.
"""
