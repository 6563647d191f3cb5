"""Record batches (magic 2): what producers send, logs store and consumers read.

The broker's hot path uses `batch_header`, `validation` and `produced_batch` only. The Arrow reader
needs numpy and pyarrow (the extra `spark`), so its users import it by name.
"""

from holdfast.protocol.records.batch_builder import (
    BatchBuilder,
    BatchOptions,
    NewRecord,
    build_batch,
)
from holdfast.protocol.records.batch_header import (
    Batch,
    RecordBatchHeader,
    batches,
    parse_header,
    stamp,
    stamp_max_timestamp,
    stamped,
)
from holdfast.protocol.records.compression import Compression
from holdfast.protocol.records.control_batch import (
    build_end_marker,
    control_type,
    read_end_marker,
)
from holdfast.protocol.records.crc import crc32c
from holdfast.protocol.records.errors import MalformedBatchError
from holdfast.protocol.records.produced_batch import prepare_produced, recompressed
from holdfast.protocol.records.record import Record, read_records
from holdfast.protocol.records.validation import (
    Rules,
    check_batch,
    check_produced,
    check_records,
    needs_records,
)

__all__ = [
    "Batch",
    "BatchBuilder",
    "BatchOptions",
    "Compression",
    "MalformedBatchError",
    "NewRecord",
    "Record",
    "RecordBatchHeader",
    "Rules",
    "batches",
    "build_batch",
    "build_end_marker",
    "check_batch",
    "check_produced",
    "check_records",
    "control_type",
    "crc32c",
    "needs_records",
    "parse_header",
    "prepare_produced",
    "read_end_marker",
    "read_records",
    "recompressed",
    "stamp",
    "stamp_max_timestamp",
    "stamped",
]
