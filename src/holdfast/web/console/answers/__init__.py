"""Answers questions about an observed cluster: why is it so, what would a fault do."""
