"""Reads and runs scenario files; there is one folder of files per section."""
