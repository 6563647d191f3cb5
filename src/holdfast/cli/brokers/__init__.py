"""`holdfast brokers`."""
