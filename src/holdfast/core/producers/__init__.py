"""Idempotent and transactional producers of a log: sequences, duplicates, open transactions."""
