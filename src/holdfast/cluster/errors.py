"""Errors of a cluster, with a hint for the user."""

from __future__ import annotations


class ClusterError(Exception):
    """The message says what and where; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.message = message
        self.hint = hint


class ClusterTimeoutError(ClusterError):
    """A condition was not met in time."""
