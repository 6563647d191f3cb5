"""Record batches of other clients: kafka-python (plain Python) and aiokafka (compiled)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords

from holdfast.protocol.records import BatchOptions, NewRecord
from tests.unit.protocol.records.samples import Plain, owned

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated function; our warnings are errors.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import util as kafka_python_util
    from kafka.record._crc32c import crc as kafka_python_crc
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

assert AiokafkaBatch.__module__.startswith("aiokafka.record._crecords"), "not the compiled one"


def kafka_python_varint(number: int) -> bytes:
    out = bytearray()
    kafka_python_util.encode_varint(number, out.append)
    return bytes(out)


def kafka_python_sum(data: bytes) -> int:
    found: int = kafka_python_crc(data)
    return found


def build(oracle: str, records: Iterable[NewRecord], options: BatchOptions) -> bytes:
    """A producer's batch as the oracle writes it; it does not set the broker's fields."""
    builder: Any = {"aiokafka": AiokafkaBuilder, "kafka-python": KafkaPythonBuilder}[oracle](
        magic=2,
        compression_type=int(options.compression),
        is_transactional=int(options.is_transactional),
        producer_id=options.producer_id,
        producer_epoch=options.producer_epoch,
        base_sequence=options.base_sequence,
        batch_size=1 << 30,
    )
    for nth, record in enumerate(records):
        headers = [(str(key), owned(value)) for key, value in record.headers]
        done = builder.append(
            nth, record.timestamp, owned(record.key), owned(record.value), headers
        )
        assert done is not None
    return bytes(builder.build())


def read(oracle: str, data: bytes) -> list[Plain]:
    """Every record of every batch, with the CRC checked, as the oracle decodes it."""
    memory: Any = {"aiokafka": AiokafkaRecords, "kafka-python": KafkaPythonRecords}[oracle](data)
    found = []
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        for record in batch:
            pairs = tuple((key, owned(value)) for key, value in record.headers)
            # kafka-python shows "no timestamp" as None.
            timestamp = -1 if record.timestamp is None else record.timestamp
            found.append(
                Plain(record.offset, timestamp, owned(record.key), owned(record.value), pairs)
            )
    return found


def kafka_python_marker(data: bytes) -> tuple[int, bool, bool]:
    """Offset, is commit, is abort of the one marker in a control batch."""
    [record] = KafkaPythonRecords(data).next_batch()
    return record.offset, record.commit, record.abort


ORACLES = ("aiokafka", "kafka-python")
