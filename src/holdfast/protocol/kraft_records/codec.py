"""A record's value in `__cluster_metadata`: frame version, API key and version, then the message.

The first three are unsigned varints. There are some thirty kinds of records; those that are not
about topics and partitions are nobody's business here.
"""

from __future__ import annotations

from typing import Final

from holdfast.protocol.codec.types import Payload
from holdfast.protocol.codec.varints import decode_unsigned
from holdfast.protocol.errors import MalformedMessage, UnsupportedVersionError
from holdfast.protocol.kraft_records.definitions import KINDS, MetadataRecord

FRAME_VERSION: Final = 1


def decode_record(value: Payload) -> MetadataRecord | None:
    """What a record says; None for one of another kind.

    MalformedMessage if the bytes are none; UnsupportedVersionError for a version, of the record or
    of its frame, that is newer than we know.
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
