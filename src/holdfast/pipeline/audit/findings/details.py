"""The reasons of findings: a number while they are moved, a sentence for people."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from holdfast.pipeline.audit.findings.findings import CONSUMED, LOG, ORDER_OF_KINDS, TABLE

PLACES: Final = (LOG, TABLE, CONSUMED)
AT_LOG, AT_TABLE, AT_CONSUMED = range(3)
KIND_NUMBER: Final = ORDER_OF_KINDS
KIND_NAMES: Final = tuple(ORDER_OF_KINDS)


class Why(IntEnum):
    NONE = 0
    ABSENT = 1
    OTHER = 2
    BEYOND = 3
    TWICE = 4
    NO_LOG = 5
    UNREADABLE = 6
    PARTIAL = 7
    PASSED = 8
    EXPIRED_UNREAD = 9
    MOVED = 10
    CONTENT = 11
    STALE = 12
    READ_TWICE = 13
    HOLE = 14
    EXTRA = 15
    AGAIN = 16
    UNANSWERED = 17
    BEHIND = 18
    NOWHERE = 19
    SHORT = 20
    NO_FOLDER = 21
    DAMAGED = 22
    NO_COPY = 23
    EPOCH = 24
    CHANGED = 25
    OLDER = 26
    EMPTY = 27


SENTENCES: Final = {
    Why.NONE: "",
    Why.ABSENT: "the leader's log continues after this offset, but has nothing at it",
    Why.OTHER: "another record stands at this offset in the leader's log",
    Why.BEYOND: "the leader's log ends before this offset",
    Why.TWICE: "the offset was acknowledged twice, and holds one record",
    Why.NO_LOG: "no directory holds a log of this partition",
    Why.UNREADABLE: "a log could not be read there",
    Why.PARTIAL: "the logs given lack it; the missing directory may have it",
    Why.PASSED: "the log has it, and the reader has later ones",
    Why.EXPIRED_UNREAD: "it left the log before the reader had it",
    Why.MOVED: "acknowledged here, stands at offset {there}",
    Why.CONTENT: "two different records",
    Why.STALE: "the reader has a record that the leader's log does not have",
    Why.READ_TWICE: "the table has this offset more than once",
    Why.HOLE: "the copy has nothing at offsets that it should hold",
    Why.EXTRA: "the copy has records that the leader's log does not have",
    Why.AGAIN: "the content of a send that already stands at another offset",
    Why.UNANSWERED: "acknowledged without an offset, and nowhere in the partition",
    Why.BEHIND: "the reader ends before this offset",
    Why.NOWHERE: "the reader has a record that is in no log and no ledger",
    Why.SHORT: "the copy ends before offsets that it had: its own checkpoint says so",
    Why.NO_FOLDER: "the copy's folder is not there, though its broker should hold it",
    Why.DAMAGED: "the copy's batch is damaged",
    Why.NO_COPY: "no readable copy is left: the batch is damaged wherever it is",
    Why.EPOCH: "the batch names a leader epoch that the checkpoint or the other copies contradict",
    Why.OLDER: "fewer copies than min.insync.replicas have it; the others may be older than the"
    " acknowledgement: audit copies of stopped brokers, or take newer copies",
    Why.EMPTY: "the copy is empty, though its own checkpoint or the cluster's metadata says that"
    " its broker has records",
    Why.CHANGED: "a broker changed the files there while they were read; audit again",
}
