"""Broker processes of one machine: settings, ports, start and stop."""
