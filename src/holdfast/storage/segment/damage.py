"""Everything that can be wrong with the batches of a segment: one list, by name.

Recovery, the reader of other processes' files (`inspect.segment_reader`) and its users know damage
by these names. What follows from a name is the user's decision.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from holdfast.protocol.records import RecordBatchHeader


class Fault(Enum):
    """What is wrong."""

    MAGIC = "the bytes are no batch, or one of an old message format"
    LENGTH = "no batch can have this length"
    TRUNCATED = "the file ends within a batch"
    CRC = "the CRC does not match"
    COUNTS = "the CRC matches, but offsets and record count cannot be true"

    TORN_TAIL = "an append to the last segment is in progress, or was interrupted"
    SHRUNK = "the file has become shorter since it was listed"

    STRAY = "the offsets cannot be in this segment"
    BACKWARD = "the base offset is before the end of the batch before"
    LEAP = "the base offset is after a gap, and not before that of the next batch"
    GAP = "offsets are missing before the batch; compaction leaves such gaps"
    EPOCH_DOWN = "the leader epoch is lower than that of a batch before"


TAILS: Final = frozenset({Fault.TORN_TAIL, Fault.SHRUNK})
"""The file ends there, and nothing that was complete is lost."""
OFFSETS: Final = frozenset({Fault.STRAY, Fault.BACKWARD, Fault.LEAP})
"""A good batch with a damaged base offset, which no CRC covers."""


class Doubt(NamedTuple):
    """A batch that is good by itself, but contradicts others or its segment."""

    nth: int
    """Its place in the run."""
    fault: Fault
    reason: str


class Damage(NamedTuple):
    """Bytes that are no batch, or a bad one."""

    position: int
    end: int
    """Where the next batch is, or is searched for in vain."""
    fault: Fault
    reason: str
    header: RecordBatchHeader | None
    """What the bytes say, if a header can be recognised."""

    @property
    def is_length_true(self) -> bool:
        """The batch's own length leads to the next batch: its extent is known."""
        return self.header is not None and self.end == self.position + self.header.size
