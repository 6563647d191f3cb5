"""The metadata that consumers exchange through the coordinator: subscriptions and assignments.

To the coordinator they are bytes. It decodes them only to find the topics that a group uses. New
versions only add fields at the end, so an unknown newer version is read as the newest known one,
and the rest is ignored.
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


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """A consumer's assigned partitions."""

    assigned_partitions: Sequence[AssignedPartitions]
    user_data: Bytes | None = None


class AssignedPartitions(Struct):
    topic: String
    partitions: Sequence[Int32]


def read_subscription(metadata: Payload) -> ConsumerProtocolSubscription:
    """A member's metadata; MalformedMessage if it is none."""
    version = _version(metadata, ConsumerProtocolSubscription)
    return ConsumerProtocolSubscription.decode_from(metadata, version, _VERSION.size)[0]


def read_assignment(assignment: Payload) -> ConsumerProtocolAssignment:
    """A member's assignment; MalformedMessage if it is none."""
    version = _version(assignment, ConsumerProtocolAssignment)
    return ConsumerProtocolAssignment.decode_from(assignment, version, _VERSION.size)[0]


def subscribed_topics(metadata: Payload) -> tuple[str, ...] | None:
    """The topics that a member reads, or None if its metadata cannot be read.

    Every version starts with version 0, which has the topics.
    """
    try:
        _version(metadata, ConsumerProtocolSubscription)
        read, _ = ConsumerProtocolSubscription.decode_from(metadata, 0, _VERSION.size)
    except MalformedMessage:
        return None
    return tuple(read.topics)


def _version(payload: Payload, cls: type[Message]) -> int:
    if len(payload) < _VERSION.size:
        raise MalformedMessage(cls.__name__, -1, "version", 0, "needs 2 bytes")
    version: int = _VERSION.unpack_from(payload)[0]
    if version < 0:
        raise MalformedMessage(cls.__name__, version, "version", 0, "is negative")
    return min(version, cls.VERSIONS[-1])
