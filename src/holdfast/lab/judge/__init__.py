"""Checks invariants, judges what became of every record, and explains a lost record."""
