"""From a violation to a scenario file."""
