"""One search in many processes."""
