"""Reads a cluster over Kafka's APIs, Holdfast or Apache Kafka.

Metadata and DescribeTopicPartitions name brokers, leaders, ISRs and eligible leader replicas. Every
broker is then asked, all at the same time, about the partitions that it leads (ListOffsets) and
the logs that it has (DescribeLogDirs; GetReplicaLogInfo if it is Holdfast). A broker that does not
answer leaves its numbers unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from holdfast.cluster.client.client import Address, Client, UnreachableError, addresses
from holdfast.cluster.client.records import EARLIEST, LATEST
from holdfast.cluster.errors import ClusterError
from holdfast.protocol.messages.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    GetReplicaLogInfoTopicPartitions,
)
from holdfast.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataResponse,
)
from holdfast.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from holdfast.web.console.reading.epochs import newest_epochs
from holdfast.web.console.reading.group_reader import read_groups
from holdfast.web.console.reading.observation import BrokerFacts, Observation, PartitionFacts
from holdfast.web.console.reading.topic_settings import read_settings

TIMEOUT_S: Final = 1.5
SLOW_EVERY: Final = 4
"""Sizes, settings and groups change slowly: they are read with every fourth observation."""
MOST_PAGES: Final = 64


class KafkaReader:
    """Keeps one connection to each broker."""

    def __init__(self, bootstrap: Sequence[Address]) -> None:
        self._addresses: dict[Address, None] = dict.fromkeys(bootstrap)
        self._clients: dict[Address, Client] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._turn = 0
        self._last = Observation()

    def read(self, avoid: Iterable[Address] = ()) -> Observation:
        """One observation. Addresses to avoid belong to brokers that are known not to answer."""
        skipped = set(avoid)
        try:
            address, answer = self._metadata(skipped)
        except ClusterError as error:
            return Observation(cluster_id=self._last.cluster_id, problem=error.message)
        seen = self._begun(answer)
        self._describe_partitions(seen, address)
        is_slow_turn = self._turn % SLOW_EVERY == 0 or len(self._topic_ids) > len(self._last.topics)
        self._turn += 1
        if is_slow_turn:
            self._read_slowly(seen, address)
        else:
            seen.topics, seen.groups = self._last.topics, self._last.groups
        self._ask_each(seen, answer, skipped, is_slow_turn=is_slow_turn)
        self._last = seen
        return seen

    def add_epochs(self, seen: Observation, partitions: Sequence[str]) -> None:
        """Ask the leaders of these partitions where their newest leader epochs begin."""
        for name in partitions:
            partition = seen.partitions.get(name)
            leader = seen.brokers.get(partition.leader) if partition else None
            if partition is not None and leader is not None and leader.is_up:
                [address] = addresses(leader.address)
                with contextlib.suppress(ClusterError):
                    partition.epochs = newest_epochs(self._client(address), partition)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _client(self, address: Address) -> Client:
        if address not in self._clients:
            self._clients[address] = Client([address], timeout_s=TIMEOUT_S)
        return self._clients[address]

    def _metadata(self, skipped: set[Address]) -> tuple[Address, MetadataResponse]:
        """From the first address that answers, which is then the first to be asked again."""
        problem: ClusterError = UnreachableError("no broker can be reached")
        for address in sorted(self._addresses, key=lambda one: one in skipped):
            try:
                answer = self._client(address).metadata()
            except ClusterError as error:
                problem = error
                continue
            self._addresses = dict.fromkeys((address, *self._addresses))
            for broker in answer.brokers:
                self._addresses.setdefault(Address(broker.host, broker.port))
            return address, answer
        raise problem

    def _begun(self, answer: MetadataResponse) -> Observation:
        seen = Observation(cluster_id=answer.cluster_id or "", controller=answer.controller_id)
        for broker in answer.brokers:
            facts = BrokerFacts(broker.node_id, f"{broker.host}:{broker.port}")
            facts.is_controller = broker.node_id == answer.controller_id
            seen.brokers[broker.node_id] = facts
        self._topic_ids = {topic.name: topic.topic_id for topic in answer.topics if topic.name}
        for topic in answer.topics:
            for one in topic.partitions:
                partition = PartitionFacts(
                    topic.name or "",
                    one.partition_index,
                    one.leader_id,
                    one.leader_epoch,
                    tuple(one.replica_nodes),
                    tuple(one.isr_nodes),
                )
                seen.partitions[partition.name] = partition
        return seen

    def _describe_partitions(self, seen: Observation, address: Address) -> None:
        """The eligible leader replicas, and fresher leaders: the controller answers."""
        request = DescribeTopicPartitionsRequest(topics=[])
        with contextlib.suppress(ClusterError):
            for _ in range(MOST_PAGES):
                answer = self._client(address).ask_any(request, DescribeTopicPartitionsResponse)
                for topic in answer.topics:
                    for one in topic.partitions:
                        found = seen.partitions.get(f"{topic.name}-{one.partition_index}")
                        if found is None:
                            continue
                        if one.leader_epoch >= found.leader_epoch:
                            found.leader, found.isr = one.leader_id, tuple(one.isr_nodes)
                            found.leader_epoch = one.leader_epoch
                        found.eligible = tuple(one.eligible_leader_replicas or ())
                        found.last_known = tuple(one.last_known_elr or ())
                if answer.next_cursor is None:
                    return
                request = DescribeTopicPartitionsRequest(topics=[], cursor=answer.next_cursor)

    def _read_slowly(self, seen: Observation, address: Address) -> None:
        names = list(self._topic_ids)
        with contextlib.suppress(ClusterError):
            seen.topics = read_settings(self._client(address), names)

    def _ask_each(
        self,
        seen: Observation,
        answer: MetadataResponse,
        skipped: set[Address],
        *,
        is_slow_turn: bool,
    ) -> None:
        homes = {
            broker.node_id: Address(broker.host, broker.port)
            for broker in answer.brokers
            if Address(broker.host, broker.port) not in skipped
        }

        def ask(broker: int) -> None:
            client = self._client(homes[broker])
            try:
                self._offsets(client, seen, broker)
                if self._log_ends(client, seen, broker):
                    seen.is_holdfast = True
                self._sizes(client, seen, broker)
            except ClusterError as error:
                seen.brokers[broker].state = "silent"
                seen.brokers[broker].faults = (error.message,)

        with ThreadPoolExecutor(max(1, len(homes))) as pool:
            list(pool.map(ask, homes))
        _conclude_log_ends(seen)
        if is_slow_turn:
            live = {one: self._client(homes[one]) for one in homes if seen.brokers[one].is_up}
            seen.groups = read_groups(live, seen)

    def _offsets(self, client: Client, seen: Observation, broker: int) -> None:
        led = [one for one in seen.partitions.values() if one.leader == broker]
        if not led:
            return
        for timestamp in (LATEST, EARLIEST):
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for one in led:
                asked = ListOffsetsPartition(partition_index=one.index, timestamp=timestamp)
                topics.setdefault(one.topic, []).append(asked)
            request = ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()
                ],
            )
            answer = client.ask_any(request, ListOffsetsResponse)
            for topic in answer.topics:
                for found in topic.partitions:
                    if not found.error_code:
                        partition = seen.partitions[f"{topic.name}-{found.partition_index}"]
                        _note_offset(partition, broker, timestamp, found.offset)

    def _log_ends(self, client: Client, seen: Observation, broker: int) -> bool:
        """Whether this is a Holdfast broker: only Holdfast answers this request."""
        ids = {topic_id: name for name, topic_id in self._topic_ids.items()}
        asked = [
            GetReplicaLogInfoTopicPartitions(
                topic_id=topic_id,
                partitions=[
                    one.index
                    for one in seen.partitions.values()
                    if one.topic == name and broker in one.replicas
                ],
            )
            for topic_id, name in ids.items()
        ]
        request = GetReplicaLogInfoRequest(
            topic_partitions=[one for one in asked if one.partitions]
        )
        try:
            answer = client.ask_any(request, GetReplicaLogInfoResponse)
        except UnreachableError:
            raise
        except ClusterError:
            return False  # Apache Kafka does not have this API
        seen.brokers[broker].epoch = answer.broker_epoch
        for topic in answer.topic_partition_log_info_list:
            for one in topic.partition_log_info:
                partition = seen.partitions.get(f"{ids[topic.topic_id]}-{one.partition}")
                if partition is not None and not one.error_code:
                    copy = partition.copy(broker)
                    copy.log_end, copy.at_least = one.log_end_offset, False
                    copy.last_epoch = one.last_written_leader_epoch
                    copy.leader_epoch = one.current_leader_epoch
        return True

    def _sizes(self, client: Client, seen: Observation, broker: int) -> None:
        answer = client.ask_any(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        total = 0
        for directory in answer.results:
            for topic in directory.topics:
                for one in topic.partitions:
                    total += one.partition_size
                    partition = seen.partitions.get(f"{topic.name}-{one.partition_index}")
                    if partition is None or one.is_future_key:
                        continue
                    copy = partition.copy(broker)
                    copy.bytes = one.partition_size
                    copy.lag = max(0, one.offset_lag)
        seen.brokers[broker].bytes = total


def _conclude_log_ends(seen: Observation) -> None:
    """Apache Kafka reports each replica's lag: its log end follows from the high watermark."""
    for partition in seen.partitions.values():
        for copy in partition.copies.values():
            if copy.log_end is None and copy.lag is not None and partition.end is not None:
                copy.log_end = partition.end - copy.lag
                copy.at_least = copy.lag == 0


def _note_offset(partition: PartitionFacts, broker: int, timestamp: int, offset: int) -> None:
    copy = partition.copy(broker)
    copy.role = "leader"
    if timestamp == LATEST:
        partition.end = copy.high_watermark = offset
    else:
        partition.start = copy.log_start = offset
