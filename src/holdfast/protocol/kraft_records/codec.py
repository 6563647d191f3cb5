"""A record's value in `__cluster_metadata`: frame version, API key and version, then the message.

The first three are unsigned varints. Of about thirty kinds of records, only those about topics and
partitions are decoded.
"""

from __future__ import annotations

from typing import Final

from holdfast.protocol.codec.types import Payload
from holdfast.protocol.codec.varints import decode_unsigned
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError
from holdfast.protocol.kraft_records.definitions import KINDS, MetadataRecord

FRAME_VERSION: Final = 1


def decode_record(value: Payload) -> MetadataRecord | None:
    """Decode a record; None for one of another kind.

    MalformedMessage for malformed bytes; UnsupportedVersionError for an unknown newer version of
    the record or of its frame.
    """
    position, numbers = 0, []
    try:
        for _ in ("frame version", "API key", "version"):
            number, position = decode_unsigned(value, position)
            numbers.append(number)
    except (IndexError, ValueError) as error:
        name = "the frame of a metadata record"
        raise MalformedMessage(name, 0, "frame", position, str(error)) from None
    frame, key, version = numbers
    if frame > FRAME_VERSION:
        raise UnsupportedVersionError("the frame of a metadata record", frame)
    if frame < FRAME_VERSION:
        reason = f"frame version {frame} is not {FRAME_VERSION}"
        raise MalformedMessage("the frame of a metadata record", frame, "frame", 0, reason)
    kind = KINDS.get(key)
    return None if kind is None else kind.decode(memoryview(value)[position:], version)
