"""What can go wrong with a cluster, told to whoever asked for it."""

from __future__ import annotations


class ClusterError(Exception):
    """The message says what and where; `hint` what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.message = message
        self.hint = hint


class ClusterTimeoutError(ClusterError):
    """What was waited for did not come in time."""
