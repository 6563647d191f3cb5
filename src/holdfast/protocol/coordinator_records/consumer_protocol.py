"""The metadata that consumers send each other through the coordinator: their subscriptions.

To the coordinator it is bytes. It decodes them only to find the topics that a group uses. New
versions only add fields at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import Final

from holdfast.protocol.codec.structs import Struct, field
from holdfast.protocol.codec.types import Bytes, Int32, Payload, String
from holdfast.protocol.errors import MalformedMessage
from holdfast.protocol.message import Message

_VERSION: Final = Packer(">h")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """A consumer's subscription, and the partitions that it owns now."""

    topics: Sequence[String]
    user_data: Bytes | None = None
    owned_partitions: Sequence[OwnedPartitions] = field("1+", default=(), ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", default=None, ignorable=True)


class OwnedPartitions(Struct):
    topic: String
    partitions: Sequence[Int32]


def subscribed_topics(metadata: Payload) -> tuple[str, ...] | None:
    """The topics that a member reads, or None if its metadata cannot be read.

    Every version starts with version 0, which has the topics.
    """
    if len(metadata) < _VERSION.size or _VERSION.unpack_from(metadata)[0] < 0:
        return None
    try:
        read, _ = ConsumerProtocolSubscription.decode_from(metadata, 0, _VERSION.size)
    except MalformedMessage:
        return None
    return tuple(read.topics)
