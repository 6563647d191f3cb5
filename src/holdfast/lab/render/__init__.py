"""Folds a trace into snapshots, and renders its events as lines and sentences."""
