"""Opening a log: recovery after an unclean shutdown, and what a crash left."""
