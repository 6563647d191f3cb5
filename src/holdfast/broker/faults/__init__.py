"""Faults that a test injects into a running broker: disk errors, links, unflushed bytes."""
