"""`holdfast topics`."""
