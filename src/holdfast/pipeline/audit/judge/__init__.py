"""The audit's rules: lost records, duplicates, order, differences between replicas."""
