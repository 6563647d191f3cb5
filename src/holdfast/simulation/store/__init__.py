"""The simulated coordination store."""
