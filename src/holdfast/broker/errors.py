"""Errors that keep a broker from starting or continuing, and the refusal of a request."""

from __future__ import annotations

from holdfast.model import ErrorCode


class StartError(Exception):
    """One line: the problem, its place, and what to do."""


class DisksLostError(Exception):
    """All log directories have failed: one line, as above."""


class RefusedError(Exception):
    """The request is refused: the error code and the message of the answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
