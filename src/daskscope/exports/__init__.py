"""Recordings in the formats of other tools: columns for data people, traces and profiles for their viewers."""
