"""`holdfast configs`."""
