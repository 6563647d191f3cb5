"""The format of the store's nodes: Kafka's own JSON, with a few additional fields.

A partition's state node is the truth for everything in `PartitionState`: one node, so that one
compare-and-set changes all of it. A topic's node holds its id; its assignment is a view for Kafka's
tools that follows the states. Unknown fields are ignored, so that a newer broker may add some. A
node that cannot be read is an error that names the node: a guess would be a decision.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.core import Registration
from holdfast.model import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    ReplicaBroker,
)

NO_DIRECTORY = ""


class DamagedNodeError(Exception):
    """A node with invalid data."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the store's node {path} is damaged: {reason}")
        self.path = path


class BrokerNode(NamedTuple):
    """A broker's registration in /brokers/ids."""

    broker: BrokerId
    host: str
    port: int
    rack: str | None = None
    intact_since: BrokerEpoch = NO_BROKER_EPOCH
    """-1: no earlier records are known to have survived, so this incarnation starts a new chain."""
    directory_id: str = NO_DIRECTORY

    def registration(self, broker_epoch: BrokerEpoch) -> Registration:
        """The core's registration; the broker epoch is the change number of the node's creation."""
        intact = self.intact_since
        return Registration(
            self.broker, broker_epoch, broker_epoch if intact == NO_BROKER_EPOCH else intact
        )


class TopicNode(NamedTuple):
    """A topic's id, and its assignment as Kafka's tools expect it."""

    topic_id: bytes
    replicas: dict[int, tuple[BrokerId, ...]]
    adding: dict[int, tuple[BrokerId, ...]]
    removing: dict[int, tuple[BrokerId, ...]]


class ReplicaFailures(NamedTuple):
    """A broker's report that its logs of these partitions have failed."""

    broker: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[tuple[str, int], ...]


def _encode(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise DamagedNodeError(path, f"no JSON ({error})") from None
    if not isinstance(fields, dict):
        raise DamagedNodeError(path, "JSON, but no object")
    return fields


class _Fields:
    """Typed access to a node's fields; every failure names the node and the field."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._fields = _decode(path, data)

    def _get(self, name: str, kind: type, default: object = ...) -> Any:
        value = self._fields.get(name, default)
        if value is ...:
            raise DamagedNodeError(self._path, f"no field {name!r}")
        # A JSON true is an int in Python, but not a valid number here.
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            raise DamagedNodeError(self._path, f"{name!r} is {value!r}")
        return value

    def number(self, name: str, default: object = ...) -> int:
        number: int = self._get(name, int, default)
        return number

    def text(self, name: str, default: object = ...) -> str:
        text: str = self._get(name, str, default)
        return text

    def optional_text(self, name: str) -> str | None:
        return None if self._fields.get(name) is None else self.text(name)

    def brokers(self, name: str, default: object = ...) -> tuple[BrokerId, ...]:
        return self._brokers(name, self._get(name, list, default))

    def _brokers(self, name: str, value: Any) -> tuple[BrokerId, ...]:
        entries: list[Any] = list(value) if isinstance(value, list | tuple) else [None]
        if any(not isinstance(one, int) or isinstance(one, bool) for one in entries):
            raise DamagedNodeError(self._path, f"{name!r} is {value!r}")
        return tuple(BrokerId(one) for one in entries)

    def assignment(self, name: str, default: object = ...) -> dict[int, tuple[BrokerId, ...]]:
        table = self._get(name, dict, default)
        if not all(key.isdecimal() for key in table):
            raise DamagedNodeError(self._path, f"{name!r} has a partition that is no number")
        ordered = sorted(table, key=int)
        return {int(key): self._brokers(name, table[key]) for key in ordered}

    def table(self, name: str) -> dict[str, str]:
        table = self._get(name, dict)
        if not all(isinstance(value, str) for value in table.values()):
            raise DamagedNodeError(self._path, f"{name!r} has a value that is no text")
        return dict(table)

    def objects(self, name: str) -> list[_Fields]:
        return [_Fields(self._path, json.dumps(one).encode()) for one in self._get(name, list, ())]

    def pairs(self, name: str, default: object = ...) -> list[tuple[Any, int]]:
        pairs = self._get(name, list, default)
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], int):
                raise DamagedNodeError(self._path, f"{name!r} has {pair!r}")
        return [(pair[0], pair[1]) for pair in pairs]


# The controller.


def encode_controller(broker: BrokerId, wall_ms: int) -> bytes:
    """The controller, and its election time by its own clock."""
    return _encode({"version": 2, "brokerid": broker, "timestamp": str(wall_ms)})


def decode_controller(path: str, data: bytes) -> BrokerId:
    """The controller."""
    return BrokerId(_Fields(path, data).number("brokerid"))


def encode_controller_epoch(epoch: ControllerEpoch) -> bytes:
    """A bare number, as Kafka wrote it."""
    return str(epoch).encode()


def decode_controller_epoch(path: str, data: bytes) -> ControllerEpoch:
    """The newest controller epoch."""
    if not data.isdigit():
        raise DamagedNodeError(path, f"no number: {data[:40]!r}")
    return ControllerEpoch(int(data))


# Brokers.


def encode_broker(node: BrokerNode, wall_ms: int) -> bytes:
    """A broker's registration."""
    return _encode(
        {
            "version": 5,
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "endpoints": [f"PLAINTEXT://{node.host}:{node.port}"],
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "jmx_port": -1,
            "timestamp": str(wall_ms),
            "intact_since": node.intact_since,
            "directory_id": node.directory_id,
        }
    )


def decode_broker(path: str, data: bytes) -> BrokerNode:
    """A broker's registration; its id is the last name of the path."""
    fields = _Fields(path, data)
    name = path.rpartition("/")[2]
    if not name.isdecimal():
        raise DamagedNodeError(path, "its name is no broker id")
    return BrokerNode(
        BrokerId(int(name)),
        fields.text("host"),
        fields.number("port"),
        fields.optional_text("rack"),
        BrokerEpoch(fields.number("intact_since", NO_BROKER_EPOCH)),
        fields.text("directory_id", NO_DIRECTORY),
    )


# Topics and partitions.


def topic_id_text(topic_id: bytes) -> str:
    """A topic id as Kafka writes it."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def encode_topic(node: TopicNode) -> bytes:
    """A topic's node."""
    return _encode(
        {
            "version": 3,
            "topic_id": topic_id_text(node.topic_id),
            "partitions": {str(key): value for key, value in sorted(node.replicas.items())},
            "adding_replicas": {str(key): value for key, value in sorted(node.adding.items())},
            "removing_replicas": {str(key): value for key, value in sorted(node.removing.items())},
        }
    )


def decode_topic(path: str, data: bytes) -> TopicNode:
    """A topic's node."""
    fields = _Fields(path, data)
    text = fields.text("topic_id")
    try:
        topic_id = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        topic_id = b""
    if len(topic_id) != 16:
        raise DamagedNodeError(path, f"no topic id: {text!r}")
    return TopicNode(
        topic_id,
        fields.assignment("partitions"),
        fields.assignment("adding_replicas", {}),
        fields.assignment("removing_replicas", {}),
    )


class UncleanElection(NamedTuple):
    """The election of an out-of-sync leader, which may lack acknowledged records.

    No decision depends on it. It is kept to explain a loss later.
    """

    leader_epoch: LeaderEpoch
    leader: BrokerId
    wall_ms: int
    isr: tuple[BrokerId, ...]
    """In sync before it."""


def encode_state(
    state: PartitionState,
    controller_epoch: ControllerEpoch,
    unclean: Sequence[UncleanElection] = (),
) -> bytes:
    """The state of one partition."""
    elections = [
        {
            "leader_epoch": one.leader_epoch,
            "leader": one.leader,
            "timestamp": one.wall_ms,
            "isr": one.isr,
        }
        for one in unclean
    ]
    return _encode(
        {
            **({"unclean_elections": elections} if elections else {}),
            "controller_epoch": controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
            "partition_epoch": state.partition_epoch,
            "replicas": state.replicas,
            "adding": state.adding,
            "removing": state.removing,
            "eligible_leaders": state.eligible_leaders,
            "last_known_eligible": state.last_known_eligible,
            "member_epochs": [list(one) for one in state.member_epochs],
        }
    )


def decode_state(path: str, data: bytes) -> PartitionState:
    """The state of one partition."""
    fields = _Fields(path, data)
    return PartitionState(
        replicas=fields.brokers("replicas"),
        isr=fields.brokers("isr"),
        leader=BrokerId(fields.number("leader")),
        leader_epoch=LeaderEpoch(fields.number("leader_epoch")),
        partition_epoch=PartitionEpoch(fields.number("partition_epoch")),
        eligible_leaders=fields.brokers("eligible_leaders", ()),
        last_known_eligible=fields.brokers("last_known_eligible", ()),
        member_epochs=tuple(
            ReplicaBroker(BrokerId(broker), BrokerEpoch(epoch))
            for broker, epoch in fields.pairs("member_epochs", ())
        ),
        adding=fields.brokers("adding", ()),
        removing=fields.brokers("removing", ()),
    )


def decode_unclean(path: str, data: bytes) -> tuple[UncleanElection, ...]:
    """The unclean elections in a state, oldest first; none if they cannot be read.

    No decision depends on them, so a damaged list does not stop the partition.
    """
    try:
        return tuple(
            UncleanElection(
                LeaderEpoch(one.number("leader_epoch")),
                BrokerId(one.number("leader")),
                one.number("timestamp"),
                one.brokers("isr"),
            )
            for one in _Fields(path, data).objects("unclean_elections")
        )
    except DamagedNodeError:
        return ()


# Settings.


def encode_config(config: Mapping[str, str]) -> bytes:
    """The settings of a topic or broker that were changed from their defaults."""
    return _encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """The settings of a topic or broker; a node without data has none."""
    return _Fields(path, data).table("config") if data else {}


# Failed logs.


def encode_replica_failures(failures: ReplicaFailures) -> bytes:
    """What a broker leaves in /log_dir_event_notification."""
    return _encode(
        {
            "version": 1,
            "broker": failures.broker,
            "event": 1,
            "broker_epoch": failures.broker_epoch,
            "partitions": [list(one) for one in failures.partitions],
        }
    )


def decode_replica_failures(path: str, data: bytes) -> ReplicaFailures:
    """What a broker left in /log_dir_event_notification."""
    fields = _Fields(path, data)
    return ReplicaFailures(
        BrokerId(fields.number("broker")),
        BrokerEpoch(fields.number("broker_epoch", NO_BROKER_EPOCH)),
        tuple((str(topic), number) for topic, number in fields.pairs("partitions")),
    )
