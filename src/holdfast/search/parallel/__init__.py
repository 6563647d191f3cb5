"""Runs one search in many processes."""
