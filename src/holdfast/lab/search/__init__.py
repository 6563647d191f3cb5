"""The search: every way to lose a record, up to a bound, in the real core."""
