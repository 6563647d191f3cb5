"""The simulated disk, byte by byte, and what a crash may leave on it."""
