"""Committed offsets: which caller may commit, what is stored, when it expires."""
