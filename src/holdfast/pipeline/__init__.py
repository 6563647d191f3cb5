"""PySpark: topics into a lake table, logs as tables, and the audit that joins them all."""
