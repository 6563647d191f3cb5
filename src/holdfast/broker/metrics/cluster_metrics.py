"""Metrics of the controller, the group coordinator, the coordination store and the broker itself.

A broker that is not the controller shows 0 for the controller's gauges, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import holdfast
from holdfast.broker.controller.service import ControllerService
from holdfast.broker.histogram import Histogram
from holdfast.broker.metadata.topic_names import OFFSETS_TOPIC
from holdfast.broker.metrics.definition import Metric, Samples, Scrape, Summary, one
from holdfast.coordination import SessionState
from holdfast.core.coordinator import Phase
from holdfast.core.groups import GroupState
from holdfast.model import NO_BROKER

# The controller.


def _controller(name: str, text: str, read: Callable[[ControllerService], float]) -> Metric:
    """A gauge that only the controller has; 0 on other brokers."""

    def samples(scrape: Scrape) -> Samples:
        service = scrape.parts.elector.controller
        yield (), 0 if service is None else read(service)

    return Metric(name, "gauge", text, (), samples)


def _offline(service: ControllerService) -> int:
    return sum(state.leader == NO_BROKER for state in service.core.partitions.values())


def _imbalanced(service: ControllerService) -> int:
    states = service.core.partitions.values()
    return sum(state.leader != state.replicas[0] for state in states if state.replicas)


def _pending(service: ControllerService) -> int:
    return sum(map(service.core.is_pending, service.core.partitions))


def _elections(scrape: Scrape) -> Samples:
    for rule, count in scrape.parts.elector.elections.items():
        yield (rule,), count


CONTROLLER: Final = (
    _controller(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 if this broker is the controller.",
        lambda _: 1,
    ),
    _controller(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a leader.",
        _offline,
    ),
    _controller(
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "Partitions whose leader is not their first replica.",
        _imbalanced,
    ),
    _controller(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions in the cluster.",
        lambda service: len(service.core.partitions),
    ),
    _controller(
        "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics in the cluster.",
        lambda service: len(service.topics),
    ),
    _controller(
        "kafka_controller_kafkacontroller_activebrokercount",
        "Registered brokers.",
        lambda service: len(service.core.brokers),
    ),
    Metric(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "counter",
        "Unclean leader elections by this broker as controller: records may be lost.",
        (),
        lambda scrape: one(scrape.parts.elector.elections["unclean"]),
    ),
    Metric(
        "holdfast_controller_elections_total",
        "counter",
        "New leader epochs by this broker as controller, by the rule that chose the leader.",
        ("rule",),
        _elections,
    ),
    _controller(
        "holdfast_controller_epoch",
        "The controller epoch; 0 on other brokers.",
        lambda service: service.controller_epoch,
    ),
    _controller(
        "holdfast_controller_pending_writes",
        "Partitions whose new state the coordination store has not confirmed yet.",
        _pending,
    ),
)

# Coordinators.


def _groups(suffix: str, text: str, *states: GroupState) -> Metric:
    return Metric(
        f"kafka_coordinator_group_groupmetadatamanager_{suffix}",
        "gauge",
        text,
        (),
        lambda scrape: one(sum(scrape.groups[state] for state in states)),
    )


def _shards(scrape: Scrape) -> Samples:
    phases = [groups.phase for groups in scrape.parts.groups.states()]
    for phase in (Phase.LOADING, Phase.ACTIVE):
        yield (OFFSETS_TOPIC, phase.name.lower()), phases.count(phase)


COORDINATORS: Final = (
    _groups("numgroups", "Groups that this broker coordinates.", *GroupState),
    _groups("numgroupsempty", "Groups without members.", GroupState.EMPTY),
    _groups(
        "numgroupspreparingrebalance",
        "Groups that wait for their members to join.",
        GroupState.PREPARING_REBALANCE,
    ),
    _groups(
        "numgroupscompletingrebalance",
        "Groups that wait for their assignment.",
        GroupState.COMPLETING_REBALANCE,
    ),
    _groups("numgroupsstable", "Groups whose members have their assignment.", GroupState.STABLE),
    _groups("numgroupsdead", "Groups that are being deleted.", GroupState.DEAD),
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numoffsets",
        "gauge",
        "Committed offsets of these groups.",
        (),
        lambda scrape: one(sum(each.offset_count for each in scrape.parts.groups.states())),
    ),
    Metric(
        "holdfast_coordinator_shards",
        "gauge",
        "Partitions of internal topics that this broker coordinates, by state.",
        ("topic", "state"),
        _shards,
    ),
)

# The broker.

BROKER_STATES: Final = {"starting": 1, "running": 3, "stopping": 6}
"""Kafka's numbers."""


def _info(scrape: Scrape) -> Samples:
    parts = scrape.parts
    identity = (str(parts.replicas.broker), parts.metadata.cluster_id)
    yield (*identity, holdfast.__version__), 1


def _session(scrape: Scrape) -> Samples:
    for state in SessionState:
        yield (state.value,), scrape.parts.store.state is state


def _log_dirs(scrape: Scrape) -> Samples:
    directory = scrape.parts.directory
    for path in (*directory.live, *directory.offline):
        yield (path,), path in directory.offline


def _milliseconds(times: Histogram) -> Summary:
    return Summary(times.count, times.total * 1000)


BROKER: Final = (
    Metric(
        "kafka_server_kafkaserver_brokerstate",
        "gauge",
        "1 while the broker starts, 3 while it runs, 6 while it stops.",
        (),
        lambda scrape: one(BROKER_STATES[scrape.parts.state()]),
    ),
    Metric(
        "holdfast_broker_info",
        "gauge",
        "Always 1; its labels identify the broker.",
        ("node_id", "cluster_id", "version"),
        _info,
    ),
    Metric(
        "holdfast_broker_epoch",
        "gauge",
        "The broker epoch of the current registration; -1 before the first.",
        (),
        lambda scrape: one(scrape.parts.membership.incarnation.broker_epoch),
    ),
    Metric(
        "holdfast_store_session",
        "gauge",
        "1 for the state of the session with the coordination store: connected, away or lost.",
        ("state",),
        _session,
    ),
    Metric(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "gauge",
        "Log directories that have failed.",
        (),
        lambda scrape: one(len(scrape.parts.directory.offline)),
    ),
    Metric(
        "kafka_log_logmanager_logdirectoryoffline",
        "gauge",
        "1 if the log directory has failed.",
        ("logDirectory",),
        _log_dirs,
    ),
    Metric(
        "kafka_log_logflushstats_logflushrateandtimems",
        "summary",
        "Milliseconds of a flush of a log in the background.",
        (),
        lambda scrape: one(_milliseconds(scrape.parts.replicas.flush_times)),
    ),
    Metric(
        "holdfast_flush_seconds",
        "histogram",
        "Seconds of a flush of a log in the background.",
        (),
        lambda scrape: one(scrape.parts.replicas.flush_times),
    ),
    Metric(
        "holdfast_event_loop_delay_seconds",
        "histogram",
        "How late the event loop calls a timer that is due four times per second.",
        (),
        lambda scrape: one(scrape.loop_delay),
    ),
)
