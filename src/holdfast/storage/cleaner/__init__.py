"""Log compaction: when a log is cleaned, and which records survive."""
