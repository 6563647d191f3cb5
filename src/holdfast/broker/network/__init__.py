"""Connections of clients and to other brokers: listener, frames, requests, responses."""
