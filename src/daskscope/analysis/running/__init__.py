"""Runs that are still going on: their progress, what they wait for, and what changed."""
