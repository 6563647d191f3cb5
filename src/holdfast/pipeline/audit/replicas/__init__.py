"""The log files of every replica: finds them, reads them, and compares them offset by offset."""
