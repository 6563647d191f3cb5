"""The settings of Kafka's producers and consumers, and how the few that matter here are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

_COMMON: Final = """
bootstrap.servers bootstrap.controllers client.dns.lookup client.id client.rack
config.providers connections.max.idle.ms enable.metrics.push interceptor.classes
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites
ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""

_PRODUCER: Final = """
batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
compression.zstd.level delivery.timeout.ms key.serializer linger.ms max.block.ms
max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
partitioner.ignore.keys transaction.timeout.ms transaction.two.phase.commit.enable
transactional.id value.serializer
"""

_CONSUMER: Final = """
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs
default.api.timeout.ms exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms
max.poll.records partition.assignment.strategy session.timeout.ms value.deserializer
"""


def _acks(text: str) -> str:
    if text not in ("0", "1", "all", "-1"):
        raise ValueError("must be 0, 1 or all")
    return text


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a number, 0 or more")
    return int(text)


def _table(names: str, checks: Mapping[str, Callable[[str], Any]]) -> Mapping[str, Any]:
    known: dict[str, Any] = dict.fromkeys((*_COMMON.split(), *names.split()), str)
    return MappingProxyType(known | dict(checks))


PRODUCER: Final = _table(
    _PRODUCER, {"acks": _acks, "enable.idempotence": _boolean, "retries": _count}
)
CONSUMER: Final = _table(_CONSUMER, {"enable.auto.commit": _boolean})
