"""Producer state of a log: kept in memory, in snapshots, and read back from batches."""
