"""The requests that the controller still has to send to one incarnation of one broker.

A channel keeps only the newest: one state per partition, and the names of the partitions whose
metadata changed. One command (LeaderAndIsr or StopReplica) is in flight at a time, with everything
that is due up to a limit, and one UpdateMetadata beside it. A request without an answer is sent
again. A restarted broker gets a new channel, so it never receives requests for its predecessor.

A StopReplica is sent before any LeaderAndIsr and never beside one: it names no topic id, so it
could stop a new topic of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from holdfast.broker.controller import request_builders
from holdfast.core import LogEnd
from holdfast.model import (
    BrokerEpoch,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    Offset,
    PartitionState,
    TopicPartition,
)
from holdfast.protocol import Request, Response
from holdfast.protocol.messages.control import (
    GetReplicaLogInfoResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)

if TYPE_CHECKING:
    from holdfast.broker.controller.service import ControllerService

RETRY_S: Final = 0.05
PURPOSE: Final = "control"
"""A separate connection: no answer here waits for that of a slow request."""
MAX_PARTITIONS_PER_REQUEST: Final = 20_000
"""Partitions in one request; the rest follows in the next. A broker accepts ten times as many, and
decodes this many in a fraction of a second."""
LOG_INFO_PURPOSE: Final = "log info"
"""Another one: a broker of release 0.1 has this API under another key, and disconnects."""
LOG_INFOS: Final = 1_000
"""Partitions in one GetReplicaLogInfo, as Kafka has it; `ask_again` asks for the rest."""


MOST_GONE: Final = 100
"""Deleted topics in one UpdateMetadata."""

K = TypeVar("K")
V = TypeVar("V")


class Stop(NamedTuple):
    """A replica to stop."""

    leader_epoch: int
    delete: bool


class Channel:
    """The controller's queue of requests to one broker incarnation."""

    def __init__(
        self, service: ControllerService, broker: BrokerId, broker_epoch: BrokerEpoch
    ) -> None:
        self._service = service
        self.broker = broker
        self.broker_epoch = broker_epoch
        self._states: dict[TopicPartition, PartitionState] = {}
        self._stops: dict[TopicPartition, Stop] = {}
        self._asks: dict[TopicPartition, LeaderEpoch] = {}
        self._names: dict[TopicPartition, None] = {}
        """Partitions whose metadata this broker does not have."""
        self._gone: dict[bytes, request_builders.GoneTopic] = {}
        self._brokers_changed = True
        self._has_metadata = False
        """Whether this incarnation of the broker has received a full UpdateMetadata."""
        self._sent_states: dict[TopicPartition, PartitionState] = {}
        """In the LeaderAndIsr that is in flight."""
        self._sent_names: dict[TopicPartition, None] = {}
        self._command_is_out = False
        self._metadata_is_out = False
        self._is_closed = False

    # Requests to send.

    def send_state(self, partition: TopicPartition, state: PartitionState) -> None:
        """Send a role until the broker accepts it or a newer one replaces it."""
        self._states[partition] = state

    def stop(self, partition: TopicPartition, stop: Stop) -> None:
        """Stop a replica."""
        self._states.pop(partition, None)
        self._stops[partition] = stop

    def ask(self, partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        """Ask for the end of the log."""
        self._asks[partition] = leader_epoch

    def publish(self, partition: TopicPartition) -> None:
        """Metadata of this partition has changed."""
        self._names[partition] = None

    def publish_gone(self, topic: request_builders.GoneTopic) -> None:
        """This topic was deleted."""
        self._gone[topic.topic_id] = topic

    def publish_brokers(self) -> None:
        """The set of live brokers has changed."""
        self._brokers_changed = True

    def has_delivered(self, partition: TopicPartition) -> bool:
        """Whether the broker has accepted all updates of a partition, its deletion included."""
        return not any(
            partition in table
            for table in (self._states, self._stops, self._names, self._sent_states)
        ) and not (partition in self._sent_names or self._is_gone_pending(partition))

    def _is_gone_pending(self, partition: TopicPartition) -> bool:
        return any(one.name == partition.topic for one in self._gone.values())

    def close(self) -> None:
        """The broker has died, or we are no longer the controller."""
        self._is_closed = True

    # Sending.

    def flush(self) -> None:
        """Send the requests that may be sent now."""
        if self._is_closed:
            return
        if not self._command_is_out:
            if self._stops:
                self._send_stops()
            elif self._states:
                self._send_states()
        if self._asks:
            self._send_asks()
        if not self._metadata_is_out and (self._names or self._gone or self._brokers_changed):
            self._send_metadata()

    def _send(
        self,
        request: Request,
        version: int,
        answered: Callable[[Response | None], None],
        purpose: str = PURPOSE,
    ) -> None:
        def guarded(response: Response | None) -> None:
            if not self._is_closed:
                answered(response)

        self._service.host.peers.to(self.broker, purpose).send(request, version, guarded)

    def _flush_later(self) -> None:
        if not self._is_closed:
            self._service.host.loop.call_later(RETRY_S, self.flush)

    def _is_taken(self, error_code: int) -> bool:
        """Whether the command as a whole was accepted."""
        if error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._service.fenced(f"broker {self.broker} obeys a newer controller")
        return error_code == ErrorCode.NONE

    def _send_states(self) -> None:
        self._sent_states, self._states = _divided(self._states, MAX_PARTITIONS_PER_REQUEST)
        self._command_is_out = True
        request = request_builders.leader_and_isr(
            self._service, self.broker_epoch, self._sent_states
        )
        self._send(request, request_builders.LEADER_AND_ISR_VERSION, self._states_answered)

    def _states_answered(self, response: Response | None) -> None:
        self._command_is_out = False
        sent, self._sent_states = self._sent_states, {}
        done: dict[TopicPartition, ErrorCode] = {}
        if isinstance(response, LeaderAndIsrResponse) and self._is_taken(response.error_code):
            done = request_builders.leader_and_isr_errors(self._service, response)
        failed: list[TopicPartition] = []
        is_missing = False
        for partition, state in sent.items():
            error = done.get(partition)
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                failed.append(partition)
            elif error is not ErrorCode.NONE and partition not in self._stops:
                is_missing = True
                if self._service.knows(partition):
                    self._states.setdefault(partition, state)
        self._go_on(is_missing)
        for partition in failed:
            self._service.replica_failed(partition, self.broker, self.broker_epoch)

    def _go_on(self, is_missing: bool) -> None:
        self._service.conditions.changed()
        if is_missing:
            self._flush_later()
        else:
            self.flush()

    def _send_stops(self) -> None:
        sent, self._stops = _divided(self._stops, MAX_PARTITIONS_PER_REQUEST)
        self._command_is_out = True

        def answered(response: Response | None) -> None:
            self._command_is_out = False
            is_taken = isinstance(response, StopReplicaResponse) and self._is_taken(
                response.error_code
            )
            if not is_taken:
                self._stops = sent | self._stops
            self._go_on(not is_taken)

        request = request_builders.stop_replica(self._service, self.broker_epoch, sent)
        self._send(request, request_builders.STOP_REPLICA_VERSION, answered)

    def _send_metadata(self) -> None:
        names, self._names = _divided(self._names, MAX_PARTITIONS_PER_REQUEST)
        gone, self._gone = _divided(self._gone, MOST_GONE)
        self._brokers_changed = False
        self._sent_names = names
        self._metadata_is_out = True

        def answered(response: Response | None) -> None:
            self._metadata_is_out = False
            self._sent_names = {}
            is_taken = isinstance(response, UpdateMetadataResponse) and self._is_taken(
                response.error_code
            )
            self._has_metadata = self._has_metadata or is_taken
            if not is_taken:
                self._names = names | self._names
                self._gone = gone | self._gone
                self._brokers_changed = True
            self._go_on(not is_taken)

        request = request_builders.update_metadata(
            self._service,
            self.broker_epoch,
            names,
            gone.values(),
            is_whole=not self._has_metadata,
        )
        self._send(request, request_builders.UPDATE_METADATA_VERSION, answered)

    def _send_asks(self) -> None:
        asked = dict(list(self._asks.items())[:LOG_INFOS])
        self._asks = {}

        def answered(response: Response | None) -> None:
            # An answer of another incarnation says nothing about the logs of this one.
            if (
                isinstance(response, GetReplicaLogInfoResponse)
                and response.broker_epoch == self.broker_epoch
            ):
                self._log_ends_answered(asked, response)

        request = request_builders.get_replica_log_info(self._service, asked)
        self._send(
            request, request_builders.GET_REPLICA_LOG_INFO_VERSION, answered, LOG_INFO_PURPOSE
        )

    def _log_ends_answered(
        self, asked: dict[TopicPartition, LeaderEpoch], response: GetReplicaLogInfoResponse
    ) -> None:
        for topic in response.topic_partition_log_info_list:
            name = self._service.topic_names.get(topic.topic_id)
            for info in topic.partition_log_info:
                partition = TopicPartition(name or "", info.partition)
                if info.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    self._service.replica_failed(partition, self.broker, self.broker_epoch)
                elif not info.error_code and asked.get(partition) == info.current_leader_epoch:
                    end = LogEnd(
                        LeaderEpoch(info.last_written_leader_epoch), Offset(info.log_end_offset)
                    )
                    epoch = LeaderEpoch(info.current_leader_epoch)
                    core = self._service.core
                    self._service.run(core.log_end_answered(partition, self.broker, epoch, end))


def _divided(table: dict[K, V], most: int) -> tuple[dict[K, V], dict[K, V]]:
    """The entries for the next request, and those for the one after it."""
    if len(table) <= most:
        return table, {}
    entries = list(table.items())
    return dict(entries[:most]), dict(entries[most:])
