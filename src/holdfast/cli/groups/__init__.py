"""`holdfast groups`."""
