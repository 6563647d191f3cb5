"""Errors of the pipeline, for the user: what, where, and what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """Something outside Holdfast is missing or wrong; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NoBrokerError(PipelineError):
    """No broker of the cluster answers."""
