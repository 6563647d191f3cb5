"""What a person is told when the pipeline cannot go on: what, where, and what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """Something outside us is missing or wrong; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
