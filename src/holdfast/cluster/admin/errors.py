"""What a cluster answers to a client: turns librdkafka's errors into those of `cluster`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from holdfast.cluster.client.client import UnreachableError
from holdfast.cluster.errors import ClusterError
from holdfast.model import ErrorCode

K = TypeVar("K")
V = TypeVar("V")

UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
    }
)
"""No broker answered."""


class RefusedError(ClusterError):
    """The cluster answered with an error."""


def error_of(what: str, error: KafkaError) -> ClusterError:
    """An error of `cluster` for one of librdkafka's."""
    kind = UnreachableError if error.code() in UNREACHABLE else RefusedError
    return kind(f"{what}: {reason_of(error)}")


def reason_of(error: KafkaError) -> str:
    """Kafka's name of an error, and the broker's own words if there are any."""
    words = error.str()
    if error.code() < 0:  # librdkafka's own error: no broker has sent it
        return words
    try:
        name = ErrorCode(error.code()).name
    except ValueError:
        return words
    return name if not words or words == name else f"{name} ({words})"


def answer(future: Future[V], what: str) -> V:
    """The result of one request."""
    try:
        return future.result()
    except KafkaException as error:
        raise error_of(what, error.args[0]) from None


def answers(futures: Mapping[K, Future[V]], what: Callable[[K], str]) -> dict[K, V]:
    """All results. If some requests failed, one error names them all."""
    found: dict[K, V] = {}
    failures: list[ClusterError] = []
    for key, future in futures.items():
        try:
            found[key] = answer(future, what(key))
        except ClusterError as error:
            failures.append(error)
    if failures:
        words = "; ".join(error.message for error in failures)
        raise type(failures[0])(words)
    return found
