"""The calls that a cluster accepts over a socket: a table of calls, each with its fields.

A request is an object with `call` and the call's fields; unknown fields and wrong types are refused
before anything is done. `docs/testserver.md` describes the same table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.cluster.cluster import WAIT_S, Cluster
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.faults import CLIENTS
from holdfast.cluster.status import cluster_status


class Fields:
    """A request's fields, taken one by one and checked."""

    def __init__(self, call: str, fields: Mapping[str, Any]) -> None:
        self._call = call
        self._fields = dict(fields)

    def _take(self, name: str, default: Any, kind: Callable[[Any], bool], what: str) -> Any:
        value = self._fields.pop(name, default)
        if value is None and default is None:
            return None
        if value is _NEEDED or not kind(value):
            raise ClusterError(f"{self._call}: {name} is {what}")
        return value

    def number(self, name: str, default: Any = None) -> Any:
        """A whole number."""
        return self._take(name, default, lambda it: type(it) is int, "a whole number")

    def seconds(self, name: str, default: Any = None) -> Any:
        """A time or a probability: any number that is not negative."""
        return self._take(name, default, _is_amount, "a number")

    def text(self, name: str, default: Any = None) -> Any:
        return self._take(name, default, lambda it: isinstance(it, str), "text")

    def flag(self, name: str) -> bool:
        return bool(self._take(name, False, lambda it: type(it) is bool, "true or false"))

    def numbers(self, name: str, default: Any = None) -> Any:
        """A list of broker ids."""
        return self._take(name, default, _are_numbers, "a list of broker ids")

    def texts(self, name: str, default: Any = None) -> Any:
        return self._take(name, default, _are_texts, "a list of texts")

    def table(self, name: str) -> dict[str, str]:
        """A map from names to texts."""
        return dict(self._take(name, {}, _is_table, "an object of texts"))

    def ends(self, name: str) -> Any:
        """Broker ids, or "clients"."""
        return self._take(name, None, _are_ends, f'a list of broker ids or "{CLIENTS}"')

    def groups(self, name: str) -> list[list[int]]:
        return list(self._take(name, _NEEDED, _are_groups, "a list of lists of broker ids"))

    def done(self) -> None:
        """Refuse remaining fields: a misspelt field would be ignored in silence."""
        if self._fields:
            raise ClusterError(f"{self._call} has no field {', '.join(sorted(self._fields))}")


_NEEDED: Final = object()
NEEDED: Final[Any] = _NEEDED


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and _are_texts(list(value.values()))


def _are_ends(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int or one == CLIENTS for one in value)


def _are_groups(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_are_numbers, value))


Prepared = Callable[[], Any]
Prepare = Callable[[Cluster, Fields], Prepared]


def run(cluster: Cluster, call: str, fields: Mapping[str, Any]) -> Any:
    """Carry out one call; ClusterError if that is impossible."""
    prepare = OPERATIONS.get(call)
    if prepare is None:
        raise ClusterError(f"there is no call {call!r}", hint=f"one of {', '.join(OPERATIONS)}")
    taken = Fields(call, fields)
    do = prepare(cluster, taken)
    taken.done()
    return do()


# Every function below reads its fields first and returns the action.


def _info(cluster: Cluster, _: Fields) -> Prepared:
    return lambda: {
        "bootstrap": cluster.bootstrap,
        "brokers": list(cluster.brokers),
        "data_dir": str(cluster.data_dir),
        "store": cluster.store,
    }


def _named(cluster: Cluster, fields: Fields, default: Any = NEEDED) -> list[int]:
    """Known brokers, each named once: all are checked before the action begins."""
    brokers: list[int] = fields.numbers("brokers", default)
    for place, broker in enumerate(brokers):
        cluster.entry(broker)
        if broker in brokers[:place]:
            raise ClusterError(f"broker {broker} is named twice", hint="name each one once")
    return brokers


def _running(cluster: Cluster, fields: Fields, default: Any = NEEDED) -> list[int]:
    brokers = _named(cluster, fields, default)
    cluster.check_running(*brokers)
    return brokers


def _each(method: str) -> Prepare:
    def prepare(cluster: Cluster, fields: Fields) -> Prepared:
        brokers = _running(cluster, fields)
        return _of_all(brokers, getattr(cluster, method))

    return prepare


def _of_all(brokers: list[int], do: Callable[[int], None]) -> Prepared:
    def do_all() -> None:
        for broker in brokers:
            do(broker)

    return do_all


def _all_at_once(method: str) -> Prepare:
    def prepare(cluster: Cluster, fields: Fields) -> Prepared:
        brokers = _running(cluster, fields)
        return lambda: getattr(cluster, method)(*brokers)

    return prepare


def _restart(cluster: Cluster, fields: Fields) -> Prepared:
    brokers = _named(cluster, fields)
    return lambda: cluster.restart(*brokers)


def _or_all(method: str) -> Prepare:
    def prepare(cluster: Cluster, fields: Fields) -> Prepared:
        brokers = _running(cluster, fields, [])
        return lambda: getattr(cluster, method)(*brokers)

    return prepare


def _partition(cluster: Cluster, fields: Fields) -> Prepared:
    groups = fields.groups("groups")
    return lambda: cluster.partition(*groups)


def _delay(cluster: Cluster, fields: Fields) -> Prepared:
    brokers, to = _running(cluster, fields), fields.ends("to")
    seconds = fields.seconds("seconds", NEEDED)
    return _of_all(brokers, lambda broker: cluster.delay(broker, seconds, to))


def _drop(cluster: Cluster, fields: Fields) -> Prepared:
    brokers, to = _running(cluster, fields), fields.ends("to")
    probability = fields.seconds("probability", 1.0)
    return _of_all(brokers, lambda broker: cluster.drop(broker, probability, to))


def _disconnect(cluster: Cluster, fields: Fields) -> Prepared:
    brokers, to = _running(cluster, fields), fields.ends("to")
    return _of_all(brokers, lambda broker: cluster.cut(broker, to))


def _disk(method: str) -> Prepare:
    def prepare(cluster: Cluster, fields: Fields) -> Prepared:
        brokers = _running(cluster, fields)
        partition, directory = fields.text("partition", ""), fields.text("directory", "")
        return _of_all(
            brokers, lambda broker: getattr(cluster, method)(broker, partition, directory)
        )

    return prepare


def _create_topic(cluster: Cluster, fields: Fields) -> Prepared:
    topic = fields.text("topic", NEEDED)
    partitions = fields.number("partitions", 1)
    factor = fields.number("replication_factor", -1)
    config = fields.table("config")
    return lambda: cluster.create_topic(topic, partitions, factor, config=config)


def _delete_topic(cluster: Cluster, fields: Fields) -> Prepared:
    topic = fields.text("topic", NEEDED)
    return lambda: cluster.delete_topic(topic)


def _leader(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    return lambda: cluster.leader(topic, partition)


def _isr(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    return lambda: list(cluster.isr(topic, partition))


def _replica(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    broker = fields.number("broker", NEEDED)
    return lambda: cluster.replica(topic, partition, broker)._asdict()


def _elect_leader(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    unclean = fields.flag("unclean")
    return lambda: cluster.elect_leader(topic, partition, unclean=unclean)


def _reassign(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    replicas = fields.numbers("replicas")
    return lambda: cluster.reassign(topic, partition, replicas)


def _wait_leader(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    broker, not_broker = fields.number("broker"), fields.number("not_broker")
    timeout_s = fields.seconds("timeout_s", WAIT_S)
    return lambda: cluster.wait_leader(
        topic, partition, broker=broker, not_broker=not_broker, timeout_s=timeout_s
    )


def _wait_isr(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    isr, size = fields.numbers("isr"), fields.number("size")
    timeout_s = fields.seconds("timeout_s", WAIT_S)
    return lambda: list(cluster.wait_isr(topic, partition, isr=isr, size=size, timeout_s=timeout_s))


def _produce(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    values = [_decoded(value) for value in fields.texts("values", NEEDED)]
    acks = fields.number("acks", -1)
    return lambda: cluster.produce(topic, values, partition, acks=acks)


def _consume(cluster: Cluster, fields: Fields) -> Prepared:
    topic, partition = fields.text("topic", NEEDED), fields.number("partition", 0)
    return lambda: [
        None if value is None else base64.b64encode(value).decode()
        for value in cluster.consume(topic, partition)
    ]


def _acked_loss(cluster: Cluster, _: Fields) -> Prepared:
    return lambda: {
        "acknowledged": len(cluster.ledger.acknowledgements),
        "refused": cluster.ledger.refused,
        "lost": [str(finding) for finding in cluster.acked_loss()],
    }


def _timeline(cluster: Cluster, fields: Fields) -> Prepared:
    partition = fields.text("partition")

    def do() -> str | None:
        path = cluster.timeline(partition)
        return None if path is None else str(path)

    return do


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ClusterError("produce: values are base64") from None


OPERATIONS: Final[dict[str, Prepare]] = {
    "info": _info,
    "status": lambda cluster, _: lambda: cluster_status(cluster),
    "kill": _each("kill"),
    "restart": _restart,
    "stop": _each("stop"),
    "pause": _each("pause"),
    "resume": _each("resume"),
    "isolate": _all_at_once("isolate"),
    "partition": _partition,
    "heal": _or_all("heal"),
    "delay": _delay,
    "drop": _drop,
    "cut": _disconnect,
    "power-loss": _all_at_once("power_loss"),
    "disk-full": _disk("disk_full"),
    "io-error": _disk("io_error"),
    "slow-flush": _disk("slow_flush"),
    "expire-session": _each("expire_session"),
    "flush": _or_all("flush"),
    "create-topic": _create_topic,
    "delete-topic": _delete_topic,
    "elect-leader": _elect_leader,
    "reassign": _reassign,
    "leader": _leader,
    "isr": _isr,
    "replica": _replica,
    "wait-leader": _wait_leader,
    "wait-isr": _wait_isr,
    "produce": _produce,
    "consume": _consume,
    "acked-loss": _acked_loss,
    "timeline": _timeline,
}
