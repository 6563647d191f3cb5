"""Fetch sessions: what a client reads, and what its next answer must contain."""
