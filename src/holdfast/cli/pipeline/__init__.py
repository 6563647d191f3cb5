"""`holdfast ingest`, `table` and `audit`."""
