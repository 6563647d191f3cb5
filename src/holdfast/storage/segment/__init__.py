"""One segment of a log: its files, its indexes, and the batches in it."""
