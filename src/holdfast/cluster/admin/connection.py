"""A client's way to a cluster: bootstrap servers and client properties.

Every command opens one of these first, so an address where no broker answers is named within
seconds, with the reason, whatever the command would have asked.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata  # type: ignore[attr-defined]

from holdfast.cluster.admin import client_properties
from holdfast.cluster.client.client import Client, UnreachableError, addresses
from holdfast.cluster.errors import ClusterError

ANSWER_S: Final = 10.0
REQUEST_S: Final = 30.0
CONNECT_S: Final = 5.0
REFRESH: Final = {"topic.metadata.refresh.interval.ms": 1000}
"""While the controller moves, librdkafka waits for its next refresh, by default in 5 minutes."""
_UNKNOWN: Final = re.compile(r'No such configuration property: "([^"]+)"')


def config_from(
    bootstrap: str | None, file: Path | None, properties: Mapping[str, str]
) -> dict[str, Any]:
    """Librdkafka's configuration: the file's, the addresses, and what the command line sets."""
    config: dict[str, Any] = {} if file is None else client_properties.read_file(file)
    if bootstrap is not None:
        config["bootstrap.servers"] = bootstrap
    config |= properties
    if not config.get("bootstrap.servers"):
        raise ClusterError("no cluster is named", hint="name it with -b HOST:PORT")
    return config


class Connection:
    """A cluster that answered. ClusterError for a wrong address or property."""

    def __init__(self, config: Mapping[str, Any], warn: Callable[[str], None]) -> None:
        self._last_error = ""
        self._bootstrap = addresses(config["bootstrap.servers"])
        self.config = {"log_level": 0, **_known(config, warn)}
        self._probe()
        self.metadata()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        return ",".join(f"{one.host}:{one.port}" for one in self._bootstrap)

    @cached_property
    def admin(self) -> AdminClient:
        config: dict[str, Any] = {**REFRESH, **self.config, "error_cb": self._note}
        return AdminClient(config)

    def metadata(self) -> ClusterMetadata:
        """Brokers, topics and partitions. Never creates a topic."""
        try:
            return self.admin.list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            reason = self._last_error or error.args[0].str()
            raise UnreachableError(f"no Kafka broker answers at {self.bootstrap}: {reason}") from (
                None
            )

    def client(self) -> Client | None:
        """The small client, which the caller closes; None if the cluster wants TLS or a login."""
        protocol = str(self.config.get("security.protocol", "PLAINTEXT")).upper()
        return Client(self._bootstrap) if protocol == "PLAINTEXT" else None

    def client_config(self, say: Callable[[str], None]) -> dict[str, Any]:
        """For a producer or consumer, which continues by itself after an outage and says it once.

        librdkafka reports each attempt to reach one broker as well.
        """

        def report(error: KafkaError) -> None:
            if error.code() != KafkaError._TRANSPORT:
                say(f"holdfast: {error.str()}")

        return {**self.config, "error_cb": report}

    def _note(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def _probe(self) -> None:
        """Librdkafka tries forever, so look whether anything listens at all."""
        failures = []
        for address in self._bootstrap:
            try:
                socket.create_connection(address, CONNECT_S).close()
            except OSError as error:
                reason = error.strerror or str(error)
                failures.append(f"{address.host}:{address.port}: {reason}")
            else:
                return
        raise UnreachableError(f"no broker at {'; '.join(failures)}")


def _known(config: Mapping[str, Any], warn: Callable[[str], None]) -> dict[str, Any]:
    """Drop what only a Java client has. At most one round for each property."""
    known = dict(config)
    while True:
        try:
            AdminClient({"log_level": 0, **known})
        except KafkaException as error:
            unknown = _UNKNOWN.search(error.args[0].str())
            if unknown is None or unknown[1] not in known:
                raise _bad(error.args[0]) from None
            del known[unknown[1]]
            warn(f"{unknown[1]} is not a property of librdkafka: ignored")
        else:
            return known


def _bad(error: KafkaError) -> ClusterError:
    return ClusterError(f"client properties: {error.str()}", hint="correct --command-config or -X")
