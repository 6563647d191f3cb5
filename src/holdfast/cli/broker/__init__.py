"""`holdfast server` and `holdfast log`."""
