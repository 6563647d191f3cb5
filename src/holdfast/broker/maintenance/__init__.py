"""Periodic work: retention, cleaning, flushing, checkpoints, stray logs."""
