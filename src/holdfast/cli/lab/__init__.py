"""`holdfast lab` and `holdfast advise`."""
