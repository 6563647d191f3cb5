"""Many record batches as Arrow columns, for the pipeline and the audit."""
