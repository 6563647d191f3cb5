"""Committed offsets: who may commit, what is stored, when it expires."""
