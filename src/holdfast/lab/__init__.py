"""The lab: scenarios, the simulated world, exhaustive search. Drives the real core."""
