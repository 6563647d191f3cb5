"""Observes a cluster: Kafka's APIs, the brokers' own status, and the traces."""
