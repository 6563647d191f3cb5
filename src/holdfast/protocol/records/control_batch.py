"""Control batches: the markers that end a transaction in every partition it wrote to.

A marker is one record in its own batch. Its key has the type of the marker, its value the epoch of
the coordinator that wrote it. A reader must skip a marker of an unknown type, not fail.
"""

from __future__ import annotations

import struct

from holdfast.model import NO_EPOCH, EndMarker, ErrorCode
from holdfast.protocol.records.batch_builder import BatchOptions, NewRecord, build_batch
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.record import Record

ABORT = 0
COMMIT = 1

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


def build_end_marker(
    marker: EndMarker, timestamp: int, base_offset: int = 0, leader_epoch: int = NO_EPOCH
) -> bytearray:
    """The control batch of one marker, 78 bytes."""
    options = BatchOptions(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    key = _KEY.pack(0, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    return build_batch([NewRecord(value, key, timestamp)], options)


def control_type(record: Record) -> int:
    """The number in a control record's key. Only ABORT and COMMIT concern transactions."""
    if record.key is None or len(record.key) < _KEY.size:
        raise _refused("a control record without a type")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise _refused(f"a control record of version {version}")
    number: int = kind
    return number


def read_end_marker(record: Record, producer_id: int, producer_epoch: int) -> EndMarker | None:
    """The marker in a control record, or None for control records of other kinds."""
    kind = control_type(record)
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise _refused("an end marker without a coordinator epoch")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise _refused(f"an end marker of version {version}")
    return EndMarker(kind == COMMIT, producer_id, producer_epoch, coordinator_epoch)


def _refused(reason: str) -> MalformedBatchError:
    return MalformedBatchError(0, reason, ErrorCode.INVALID_RECORD)
