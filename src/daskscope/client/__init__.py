"""What a user calls from a notebook or a script: recording a stretch of work, opening recordings, attaching numbers."""
