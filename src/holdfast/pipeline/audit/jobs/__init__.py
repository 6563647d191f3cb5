"""The rows of ledgers and tables, and the job that judges them by stretch."""
