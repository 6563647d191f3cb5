"""`holdfast up`, `status`, `fault`, `chaos` and `testserver`."""
