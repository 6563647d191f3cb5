"""The current leader in an answer to a client that asked the wrong broker (KIP-951)."""

from __future__ import annotations

from holdfast.protocol.codec.structs import Struct
from holdfast.protocol.codec.types import Int32, String


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None
