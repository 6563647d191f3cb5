"""Scenario files, one folder per section, and what reads and runs them."""
