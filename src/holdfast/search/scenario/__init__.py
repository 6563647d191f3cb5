"""Writes a violation as a scenario file."""
