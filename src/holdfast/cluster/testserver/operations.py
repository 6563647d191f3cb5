"""The calls that a cluster accepts over a socket: a table of calls, each with its fields.

A request is an object with `call` and the call's fields; unknown fields and wrong types are refused
before anything is done. `docs/testserver.md` describes the same table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from holdfast.cluster.cluster import WAIT_S, Cluster
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.faults import CLIENTS
from holdfast.cluster.status import cluster_status

NEEDED: Final[Any] = object()
"""The default of a field that a request must have."""


class Field(NamedTuple):
    """One field of a call: what its value must be, and what stands for a missing one."""

    is_good: Callable[[Any], bool]
    what: str
    default: Any = None
    """None: the field may also be null."""
    read: Callable[[Any, Any], Any] = lambda _cluster, value: value
    """Makes of a good value what the call gets; ClusterError if this cluster cannot use it."""

    def needed(self) -> Field:
        """The field of a call that cannot do without it."""
        return self._replace(default=NEEDED)

    def default_to(self, default: Any) -> Field:
        """The field of a call that has a default for it."""
        return self._replace(default=default)


Fields = Mapping[str, Field]


def taken(call: str, given: Mapping[str, Any], fields: Fields, cluster: Any = None) -> Any:
    """The fields of a request by name. A misspelt one is refused, not ignored in silence."""
    left, values = dict(given), {}
    for name, field in fields.items():
        value = left.pop(name, field.default)
        is_left_out = value is None and field.default is None
        if not is_left_out and (value is NEEDED or not field.is_good(value)):
            raise ClusterError(f"{call}: {name} is {field.what}")
        values[name] = field.read(cluster, value)
    if left:
        raise ClusterError(f"{call} has no field {', '.join(sorted(left))}")
    return values


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and _are_texts(list(value.values()))


def _are_ends(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int or one == CLIENTS for one in value)


def _are_groups(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_are_numbers, value))


def _named(cluster: Cluster, brokers: list[int]) -> list[int]:
    """Known brokers, each named once: all are checked before the action begins."""
    for place, broker in enumerate(brokers):
        cluster.entry(broker)
        if broker in brokers[:place]:
            raise ClusterError(f"broker {broker} is named twice", hint="name each one once")
    return brokers


def _running(cluster: Cluster, brokers: list[int]) -> list[int]:
    cluster.check_running(*_named(cluster, brokers))
    return brokers


def _decoded(_cluster: Cluster, values: list[str]) -> list[bytes]:
    try:
        return [base64.b64decode(value, validate=True) for value in values]
    except binascii.Error:
        raise ClusterError("produce: values are base64") from None


NUMBER: Final = Field(lambda value: type(value) is int, "a whole number")
AMOUNT: Final = Field(_is_amount, "a number")
"""A time or a probability: any number that is not negative."""
TEXT: Final = Field(lambda value: isinstance(value, str), "text")
FLAG: Final = Field(lambda value: type(value) is bool, "true or false", False)
NUMBERS: Final = Field(_are_numbers, "a list of broker ids")
TABLE: Final = Field(_is_table, "an object of texts", {})
ENDS: Final = Field(_are_ends, f'a list of broker ids or "{CLIENTS}"')
VALUES: Final = Field(_are_texts, "a list of texts", NEEDED, _decoded)
GROUPS: Final = Field(_are_groups, "a list of lists of broker ids", NEEDED)

RUNNING: Final = NUMBERS._replace(default=NEEDED, read=_running)
TOPIC: Final = {"topic": TEXT.needed()}
PARTITION: Final = {**TOPIC, "partition": NUMBER.default_to(0)}
DISK: Final = {"partition": TEXT.default_to(""), "directory": TEXT.default_to("")}


class Call(NamedTuple):
    """One call: it gets the cluster, and its fields by name."""

    do: Callable[..., Any]
    fields: Fields = MappingProxyType({})


def run(cluster: Cluster, call: str, given: Mapping[str, Any]) -> Any:
    """Carry out one call; ClusterError if that is impossible."""
    known = OPERATIONS.get(call)
    if known is None:
        raise ClusterError(f"there is no call {call!r}", hint=f"one of {', '.join(OPERATIONS)}")
    return known.do(cluster, **taken(call, given, known.fields, cluster))


def _plain(method: str, fields: Fields) -> Call:
    """A call of a method whose parameters have the names of the fields."""
    return Call(lambda cluster, **values: getattr(cluster, method)(**values), fields)


def _each(method: str, fields: Fields | None = None) -> Call:
    """A call of a method for one broker after the other."""

    def do(cluster: Cluster, brokers: list[int], **values: Any) -> None:
        for broker in brokers:
            getattr(cluster, method)(broker, **values)

    return Call(do, {"brokers": RUNNING, **(fields or {})})


def _together(method: str, brokers: Field = RUNNING) -> Call:
    """A call of a method for all these brokers."""
    return Call(
        lambda cluster, brokers: getattr(cluster, method)(*brokers),
        {"brokers": brokers},
    )


def _info(cluster: Cluster) -> dict[str, Any]:
    return {
        "bootstrap": cluster.bootstrap,
        "brokers": list(cluster.brokers),
        "data_dir": str(cluster.data_dir),
        "store": cluster.store,
    }


def _consume(cluster: Cluster, **place: Any) -> list[str | None]:
    values = cluster.consume(**place)
    return [None if value is None else base64.b64encode(value).decode() for value in values]


def _acked_loss(cluster: Cluster) -> dict[str, Any]:
    return {
        "acknowledged": len(cluster.ledger.acknowledgements),
        "refused": cluster.ledger.refused,
        "lost": [str(finding) for finding in cluster.acked_loss()],
    }


def _timeline(cluster: Cluster, partition: str | None) -> str | None:
    path = cluster.timeline(partition)
    return None if path is None else str(path)


OPERATIONS: Final[dict[str, Call]] = {
    "info": Call(_info),
    "status": Call(cluster_status),
    "kill": _each("kill"),
    "restart": _together("restart", RUNNING._replace(read=_named)),
    "stop": _each("stop"),
    "pause": _each("pause"),
    "resume": _each("resume"),
    "isolate": _together("isolate"),
    "partition": Call(lambda cluster, groups: cluster.partition(*groups), {"groups": GROUPS}),
    "heal": _together("heal", RUNNING.default_to([])),
    "delay": _each("delay", {"to": ENDS, "seconds": AMOUNT.needed()}),
    "drop": _each("drop", {"to": ENDS, "probability": AMOUNT.default_to(1.0)}),
    "cut": _each("cut", {"to": ENDS}),
    "power-loss": _together("power_loss"),
    "disk-full": _each("disk_full", DISK),
    "io-error": _each("io_error", DISK),
    "slow-flush": _each("slow_flush", DISK),
    "expire-session": _each("expire_session"),
    "flush": _together("flush", RUNNING.default_to([])),
    "create-topic": _plain(
        "create_topic",
        {
            **TOPIC,
            "partitions": NUMBER.default_to(1),
            "replication_factor": NUMBER.default_to(-1),
            "config": TABLE,
        },
    ),
    "delete-topic": _plain("delete_topic", TOPIC),
    "elect-leader": _plain("elect_leader", {**PARTITION, "unclean": FLAG}),
    "reassign": _plain("reassign", {**PARTITION, "replicas": NUMBERS}),
    "leader": _plain("leader", PARTITION),
    "isr": _plain("isr", PARTITION),
    "replica": Call(
        lambda cluster, **values: cluster.replica(**values)._asdict(),
        {**PARTITION, "broker": NUMBER.needed()},
    ),
    "wait-leader": _plain(
        "wait_leader",
        {
            **PARTITION,
            "broker": NUMBER,
            "not_broker": NUMBER,
            "timeout_s": AMOUNT.default_to(WAIT_S),
        },
    ),
    "wait-isr": _plain(
        "wait_isr",
        {**PARTITION, "isr": NUMBERS, "size": NUMBER, "timeout_s": AMOUNT.default_to(WAIT_S)},
    ),
    "produce": _plain("produce", {**PARTITION, "values": VALUES, "acks": NUMBER.default_to(-1)}),
    "consume": Call(_consume, PARTITION),
    "acked-loss": Call(_acked_loss),
    "timeline": Call(_timeline, {"partition": TEXT}),
}
