"""The reasons of findings: a number while they are moved, a sentence for people."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

from holdfast.pipeline.audit.findings.findings import CONSUMED, LOG, ORDER_OF_KINDS, TABLE

PLACES: Final = (LOG, TABLE, CONSUMED)
AT_LOG, AT_TABLE, AT_CONSUMED = range(3)
KIND_NUMBER: Final = ORDER_OF_KINDS
KIND_NAMES: Final = tuple(ORDER_OF_KINDS)


class Why(IntEnum):
    """A reason: its number, in the order of these lines, and its sentence."""

    sentence: str

    def __new__(cls, sentence: str) -> Self:
        number = len(cls.__members__)
        why = int.__new__(cls, number)
        why._value_, why.sentence = number, sentence
        return why

    NONE = ""
    ABSENT = "the leader's log continues after this offset, but has nothing at it"
    OTHER = "another record is at this offset in the leader's log"
    BEYOND = "the leader's log ends before this offset"
    TWICE = "the offset was acknowledged twice, and holds one record"
    NO_LOG = "no directory holds a log of this partition"
    UNREADABLE = "a log could not be read there"
    PARTIAL = "the logs given lack it; the missing directory may have it"
    PASSED = "the log has it, and the reader has later ones"
    EXPIRED_UNREAD = "it left the log before the reader had it"
    MOVED = "acknowledged here, but is at offset {there}"
    CONTENT = "two different records"
    STALE = "the reader has a record that the leader's log does not have"
    READ_TWICE = "the table has this offset more than once"
    HOLE = "the copy has nothing at offsets that it should hold"
    EXTRA = "the copy has records that the leader's log does not have"
    AGAIN = "the content of a send that is already at another offset"
    UNANSWERED = "acknowledged without an offset, and nowhere in the partition"
    BEHIND = "the reader ends before this offset"
    NOWHERE = "the reader has a record that is in no log and no ledger"
    SHORT = "the copy ends before offsets that it had: its own checkpoint says so"
    NO_FOLDER = "the copy's folder is not there, though its broker should hold it"
    DAMAGED = "the copy's batch is damaged"
    NO_COPY = "no readable copy is left: the batch is damaged wherever it is"
    EPOCH = "the batch names a leader epoch that the checkpoint or the other copies contradict"
    CHANGED = "a broker changed the files there while they were read; audit again"
    OLDER = (
        "fewer copies than min.insync.replicas have it; the others may be older than the"
        " acknowledgement: audit copies of stopped brokers, or take newer copies"
    )
    EMPTY = (
        "the copy is empty, though its own checkpoint or the cluster's metadata says that"
        " its broker has records"
    )
