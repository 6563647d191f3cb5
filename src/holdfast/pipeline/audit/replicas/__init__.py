"""The log files of every replica: found, read, and laid side by side."""
