"""Seeded runs: one integer decides the faults, the delays and the traffic of a run."""
