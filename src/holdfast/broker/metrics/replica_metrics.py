"""Metrics of replicas: their logs, their lag, the ISR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from holdfast.broker.metrics.definition import Labels, Metric, Samples, Scrape, one
from holdfast.broker.replication.partition import Partition
from holdfast.core import UNKNOWN_END, Follower, FollowerProgress, Leader

PARTITION: Final = ("topic", "partition")
FOLLOWER: Final = (*PARTITION, "follower")

LeaderRead = Callable[[Partition, Leader], float]
FollowerRead = Callable[[Leader, FollowerProgress], float]


def _place(partition: Partition) -> Labels:
    return partition.name.topic, str(partition.name.partition)


def _replica(name: str, text: str, read: Callable[[Partition], float]) -> Metric:
    """A metric of every replica on this broker."""

    def samples(scrape: Scrape) -> Samples:
        for partition in scrape.partitions:
            try:
                value = read(partition)
            except OSError:
                continue  # Its disk has failed: kafka_server_replicamanager_offlinereplicacount.
            yield _place(partition), value

    return Metric(name, "gauge", text, PARTITION, samples)


def _led(name: str, text: str, read: LeaderRead) -> Metric:
    """A metric of every partition that this broker leads."""

    def samples(scrape: Scrape) -> Samples:
        for partition, leader in scrape.leaders:
            yield _place(partition), read(partition, leader)

    return Metric(name, "gauge", text, PARTITION, samples)


def _followers(name: str, text: str, read: FollowerRead, *, if_known: bool = True) -> Metric:
    """A metric of every follower of the partitions that this broker leads."""

    def samples(scrape: Scrape) -> Samples:
        for partition, leader in scrape.leaders:
            for broker, progress in tuple(leader.insync.followers.items()):
                if progress.log_end_offset != UNKNOWN_END or not if_known:
                    yield (*_place(partition), str(broker)), read(leader, progress)

    return Metric(name, "gauge", text, FOLLOWER, samples)


def _count(name: str, text: str, counts: LeaderRead) -> Metric:
    """How many partitions that this broker leads have a property."""
    return Metric(
        f"kafka_server_replicamanager_{name}",
        "gauge",
        text,
        (),
        lambda scrape: one(sum(counts(*led) for led in scrape.leaders)),
    )


# Logs.


def _size(partition: Partition) -> int:
    return sum(segment.size for segment in partition.log.segments)


def _unflushed(partition: Partition) -> int:
    log = partition.log
    return sum(segment.unflushed_bytes for segment in log.segments[log.first_unflushed :])


# The ISR.


def _is_under_replicated(partition: Partition, leader: Leader) -> bool:
    """Replicas that a reassignment adds are not counted as missing, as in Kafka."""
    state = partition.state
    adding = 0 if state is None else len(state.adding)
    return len(leader.insync.isr) < len(leader.insync.followers) + 1 - adding


def _minimum(leader: Leader) -> int:
    return min(leader.insync.settings.min_insync_replicas, len(leader.insync.followers) + 1)


def _is_below_minimum(_: Partition, leader: Leader) -> bool:
    return len(leader.insync.isr) < _minimum(leader)


def _is_at_minimum(_: Partition, leader: Leader) -> bool:
    return len(leader.insync.isr) == _minimum(leader)


def _is_reassigning(partition: Partition, _: Leader) -> bool:
    state = partition.state
    return state is not None and bool(state.adding or state.removing)


def _is_in_sync(partition: Partition) -> bool:
    role, state = partition.replica.role, partition.state
    isr = role.insync.isr if isinstance(role, Leader) else () if state is None else state.isr
    return partition.replica.broker in isr


def _partition_epoch(partition: Partition) -> int:
    role, state = partition.replica.role, partition.state
    if isinstance(role, Leader):
        return role.insync.partition_epoch
    return -1 if state is None else state.partition_epoch


# Lag.


def _lag(partition: Partition) -> int:
    return max(0, partition.leader_high_watermark - partition.replica.log.log_end_offset)


def _followed(scrape: Scrape) -> Iterator[tuple[Partition, Follower]]:
    for partition in scrape.partitions:
        role = partition.replica.role
        if isinstance(role, Follower):
            yield partition, role


def _fetcher_lag(scrape: Scrape) -> Samples:
    for partition, role in _followed(scrape):
        yield (f"ReplicaFetcherThread-0-{role.leader}", *_place(partition)), _lag(partition)


def _max_lag(scrape: Scrape) -> Samples:
    yield ("Replica",), max((_lag(partition) for partition, _ in _followed(scrape)), default=0)


def _failed_copies(scrape: Scrape) -> Samples:
    failed = sum(bool(partition.copy_problem) for partition, _ in _followed(scrape))
    yield ("Replica",), failed


# Waiting requests.


def _waiting_produces(_: Partition, leader: Leader) -> int:
    return len(leader.waiting)


def _parked_fetches(_: Partition, leader: Leader) -> int:
    return len(leader.parked_at_end) + len(leader.parked_at_high_watermark)


def _purgatory(scrape: Scrape) -> Samples:
    yield ("Produce",), sum(_waiting_produces(*led) for led in scrape.leaders)
    sessions = (session for partition in scrape.partitions for session in partition.sessions)
    parked = dict.fromkeys(session for session in sessions if session.parked is not None)
    yield ("Fetch",), len(parked)


MANAGER: Final = (
    Metric(
        "kafka_server_replicamanager_partitioncount",
        "gauge",
        "Replicas on this broker.",
        (),
        lambda scrape: one(len(scrape.partitions)),
    ),
    Metric(
        "kafka_server_replicamanager_leadercount",
        "gauge",
        "Partitions that this broker leads.",
        (),
        lambda scrape: one(len(scrape.leaders)),
    ),
    _count(
        "underreplicatedpartitions",
        "Partitions that this broker leads whose ISR lacks a replica.",
        _is_under_replicated,
    ),
    _count(
        "underminisrpartitioncount",
        "Partitions that this broker leads whose ISR is smaller than min.insync.replicas.",
        _is_below_minimum,
    ),
    _count(
        "atminisrpartitioncount",
        "Partitions that this broker leads whose ISR is as large as min.insync.replicas.",
        _is_at_minimum,
    ),
    _count(
        "reassigningpartitions",
        "Partitions that this broker leads and that are being reassigned.",
        _is_reassigning,
    ),
    Metric(
        "kafka_server_replicamanager_offlinereplicacount",
        "gauge",
        "Replicas on this broker whose log has failed.",
        (),
        lambda scrape: one(sum(each.replica.has_failed for each in scrape.partitions)),
    ),
    Metric(
        "kafka_server_replicamanager_isrshrinks_total",
        "counter",
        "Proposals of this broker to shrink an ISR that the controller accepted.",
        (),
        lambda scrape: one(scrape.parts.proposals.shrinks),
    ),
    Metric(
        "kafka_server_replicamanager_isrexpands_total",
        "counter",
        "Proposals of this broker to expand an ISR that the controller accepted.",
        (),
        lambda scrape: one(scrape.parts.proposals.expands),
    ),
    Metric(
        "kafka_server_replicamanager_failedisrupdates_total",
        "counter",
        "Proposals of this broker that the controller refused.",
        (),
        lambda scrape: one(scrape.parts.proposals.failures),
    ),
    Metric(
        "kafka_server_replicafetchermanager_maxlag",
        "gauge",
        "The largest kafka_server_fetcherlagmetrics_consumerlag of this broker.",
        ("clientId",),
        _max_lag,
    ),
    Metric(
        "kafka_server_replicafetchermanager_failedpartitionscount",
        "gauge",
        "Followers on this broker that cannot copy what their leader sends.",
        ("clientId",),
        _failed_copies,
    ),
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "gauge",
        "Waiting requests: Produce for acks=all (one for each batch), Fetch for new records.",
        ("delayedOperation",),
        _purgatory,
    ),
)

REPLICAS: Final = (
    _replica("kafka_log_log_size", "Bytes of the replica's log.", _size),
    _replica(
        "kafka_log_log_numlogsegments",
        "Segments of the replica's log.",
        lambda partition: len(partition.log.segments),
    ),
    _replica(
        "kafka_log_log_logstartoffset",
        "The first offset in the replica's log.",
        lambda partition: partition.log.log_start_offset,
    ),
    _replica(
        "kafka_log_log_logendoffset",
        "The next offset that the replica writes (LEO).",
        lambda partition: partition.log.log_end_offset,
    ),
    _replica(
        "holdfast_replica_high_watermark",
        "The first offset that is not committed, as far as the replica has received it.",
        lambda partition: partition.replica.log.high_watermark,
    ),
    _replica(
        "holdfast_replica_leader_epoch",
        "The newest leader epoch that the replica has received.",
        lambda partition: partition.replica.leader_epoch,
    ),
    _replica(
        "holdfast_replica_partition_epoch",
        "The version of the leader and ISR that the replica uses.",
        _partition_epoch,
    ),
    _replica(
        "holdfast_replica_is_leader",
        "1 if the replica acts as leader.",
        lambda partition: partition.presumes_leadership,
    ),
    _replica(
        "holdfast_replica_is_in_sync",
        "1 if the newest ISR that the replica has received contains it.",
        _is_in_sync,
    ),
    _replica(
        "holdfast_replica_unflushed_bytes",
        "Bytes of the replica's log that a power failure of its machine could take.",
        _unflushed,
    ),
    _led(
        "kafka_cluster_partition_replicascount",
        "Replicas of a partition that this broker leads.",
        lambda _, leader: len(leader.insync.followers) + 1,
    ),
    _led(
        "kafka_cluster_partition_insyncreplicascount",
        "Members of the ISR of a partition that this broker leads.",
        lambda _, leader: len(leader.insync.isr),
    ),
    _led(
        "kafka_cluster_partition_underreplicated",
        "1 if the ISR lacks a replica.",
        _is_under_replicated,
    ),
    _led(
        "kafka_cluster_partition_underminisr",
        "1 if the ISR is smaller than min.insync.replicas.",
        _is_below_minimum,
    ),
    _led(
        "holdfast_replica_waiting_produces",
        "Batches with acks=all that wait for the high watermark.",
        _waiting_produces,
    ),
    _led(
        "holdfast_replica_parked_fetches",
        "Fetch sessions that wait for the partition to grow.",
        _parked_fetches,
    ),
    _followers(
        "holdfast_follower_log_end_offset",
        "The follower's LEO at its last fetch; none before its first fetch in the leader epoch.",
        lambda _, progress: progress.log_end_offset,
    ),
    _followers(
        "holdfast_follower_lag",
        "Offsets from the follower's LEO to the leader's; none before its first fetch.",
        lambda leader, progress: max(0, leader.log.log_end_offset - progress.log_end_offset),
    ),
    _followers(
        "holdfast_follower_is_in_sync",
        "1 if the ISR contains the follower.",
        lambda leader, progress: progress.broker in leader.insync.isr,
        if_known=False,
    ),
    Metric(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "gauge",
        "Offsets from a follower's LEO on this broker to its leader's high watermark.",
        ("clientId", *PARTITION),
        _fetcher_lag,
    ),
)
