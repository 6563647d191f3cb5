"""Clusters over a socket, for tests in any language."""
