"""Compare the chunks of coffea with coffea's own metrics; ``scripts/coffea`` runs it in environments with several versions."""
