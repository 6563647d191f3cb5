"""The error of decoding a record batch, and the rule for its code.

A client acts differently on two kinds of errors:

- Damage (truncated, a wrong CRC, impossible sizes in the header) is CORRUPT_MESSAGE. It is
  retriable: the same batch sent again may arrive whole.
- A contradiction in a batch whose CRC matches is INVALID_RECORD. A retry cannot help.

Old formats, unsupported codecs, sizes above the limit and impossible timestamps have their own
codes.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import ErrorCode


class RecordError(NamedTuple):
    """One record for which a batch is refused (KIP-467)."""

    batch_index: int
    """Its place in the batch."""
    message: str


class MalformedBatchError(Exception):
    """A refused record batch: the position, the reason and the error code."""

    position: int
    """Byte position in the buffer that was handed in, or in the batch's records once they have been
    decompressed; the reason says so in that case."""

    reason: str
    error_code: ErrorCode
    record_errors: tuple[RecordError, ...]
    """The records for which the batch is refused, if it is for single ones."""

    def __init__(
        self,
        position: int,
        reason: str,
        error_code: ErrorCode = ErrorCode.CORRUPT_MESSAGE,
        record_errors: tuple[RecordError, ...] = (),
    ) -> None:
        super().__init__(position, reason, error_code, record_errors)
        self.position = position
        self.reason = reason
        self.error_code = error_code
        self.record_errors = record_errors

    def __str__(self) -> str:
        return f"byte {self.position}: {self.reason} ({self.error_code.name})"


class ExpansionError(Exception):
    """Compressed bytes that are damaged, or that hold more than the limit.

    A codec does not have the position of its bytes; `compression` has, and turns this into a
    MalformedBatchError.
    """

    error_code: ErrorCode

    def __init__(self, reason: str, error_code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(reason)
        self.error_code = error_code

    @classmethod
    def too_large(cls, limit: int) -> ExpansionError:
        """The output exceeds the limit."""
        return cls(f"expands to more than {limit} bytes", ErrorCode.MESSAGE_TOO_LARGE)
