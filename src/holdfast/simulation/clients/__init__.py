"""Clients of a simulated cluster: producers, consumers, offset commits, forged commands."""
