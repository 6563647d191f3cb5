"""A record of what was flushed, and the removal of the rest, as a power failure would do it."""
