"""The one error that reading a record batch can raise, and the rule for its code.

Two kinds of wrong, and a client acts differently on each:

- Damage (cut short, CRC does not match, impossible sizes in the header) is CORRUPT_MESSAGE. It is
  retriable: the same batch sent again may arrive whole.
- A lie inside a batch whose CRC matches is INVALID_RECORD. Sending it again cannot help.

Old formats, codecs we lack, sizes above the limit and impossible timestamps have codes of their
own.
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
    """A record batch that cannot be taken or read: where, why, and what to answer."""

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

    A codec does not know where its bytes lie; `compression` does, and makes a MalformedBatchError
    of this.
    """

    error_code: ErrorCode

    def __init__(self, reason: str, error_code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(reason)
        self.error_code = error_code

    @classmethod
    def too_large(cls, limit: int) -> ExpansionError:
        """More came out than may."""
        return cls(f"expands to more than {limit} bytes", ErrorCode.MESSAGE_TOO_LARGE)
