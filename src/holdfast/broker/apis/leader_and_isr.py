"""LeaderAndIsr: the partitions that we lead and follow, as far as the store confirms them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.broker.apis.controller_relay import CurrentController
from holdfast.broker.metadata.controller_fencing import PART, Commands
from holdfast.broker.metadata.dynamic_configs import Configs
from holdfast.broker.metadata.store_facts import Facts, read_brokers
from holdfast.broker.network.calls import Call
from holdfast.broker.network.peer_set import Peers
from holdfast.broker.replication.replicas import PartitionAssignment, Replicas
from holdfast.broker.settings.listeners import Endpoint
from holdfast.coordination import Store
from holdfast.core import Found, PartitionFact, is_known, needs_settings, role_of
from holdfast.model import (
    NO_BROKER,
    BrokerId,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
    TopicPartition,
)
from holdfast.protocol.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

AT_ONCE: Final = 200
"""Partitions whose roles are applied, and whose logs are created, together."""


@dataclass(frozen=True, slots=True)
class RoleParts:
    """What a change of roles needs and changes."""

    commands: Commands
    replicas: Replicas
    configs: Configs
    peers: Peers
    controller: CurrentController
    store: Store


def handle(parts: RoleParts, call: Call) -> None:
    """Apply every role that the store confirms, then answer; a refused command changes nothing."""
    request: LeaderAndIsrRequest = call.request
    parts.commands.obey(call, request, partial(_Roles, parts), _refused)


def _refused(error: ErrorCode) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(error_code=error)


class _Roles:
    """The roles that one command names, and those that the store has."""

    def __init__(self, parts: RoleParts, request: LeaderAndIsrRequest) -> None:
        self._parts = parts
        self._request = request
        self._named = [
            (topic, one) for topic in request.topic_states for one in topic.partition_states
        ]
        self._assignments: list[PartitionAssignment] = []
        """Of this part."""
        self._new: dict[TopicPartition, None] = {}
        """The partitions to read in the store: those with a new state."""
        self._errors: dict[bytes, list[LeaderAndIsrPartitionError]] = {}
        """Errors of the parts that are done."""
        self._done = 0

    @property
    def is_done(self) -> bool:
        return self._done >= len(self._named)

    def next_part(self) -> list[TopicPartition]:
        part = self._named[self._done : self._done + PART]
        self._assignments = [
            PartitionAssignment(
                TopicPartition(topic.topic_name, one.partition_index), topic.topic_id, _state(one)
            )
            for topic, one in part
        ]
        self._new = {
            one.name: None
            for one in self._assignments
            if not is_known(one.topic_id, one.state, _own(self._parts, one))
        }
        return list(self._new)

    async def carry_out(self, facts: Facts) -> Found:
        """Apply the roles that the store confirms.

        The settings are read before a leader epoch begins; see `needs_settings`.
        """
        parts = self._parts
        roles = self._confirmed(facts)
        taken = [one for one in roles if isinstance(one, PartitionAssignment)]
        fresh = list(
            dict.fromkeys(one.name.topic for one in taken if _is_fresh(parts.replicas, one))
        )
        if fresh:
            await parts.configs.read_topics(parts.store, fresh)
            parts.replicas.settings_changed(fresh)
        is_fruitless = await _find_leaders(parts, self._request, taken)
        done = iter(await self._apply(taken))
        codes = [next(done) if isinstance(one, PartitionAssignment) else one for one in roles]
        for one, code in zip(self._assignments, codes, strict=True):
            error = LeaderAndIsrPartitionError(partition_index=one.name.partition, error_code=code)
            self._errors.setdefault(one.topic_id, []).append(error)
            is_fruitless |= bool(code) and one.name in self._new
        self._done += len(self._assignments)
        if self._is_contradicted(roles, facts):
            return Found.CONTRADICTION
        return Found.NOTHING_NEW if is_fruitless else Found.AS_COMMANDED

    def _is_contradicted(self, roles: list[PartitionAssignment | ErrorCode], facts: Facts) -> bool:
        """Whether the store has another role for us, or none. An unreadable node is no answer."""
        return any(
            isinstance(role, ErrorCode) and one.name in self._new and one.name in facts
            for one, role in zip(self._assignments, roles, strict=True)
        )

    def _confirmed(self, facts: Facts) -> list[PartitionAssignment | ErrorCode]:
        """The store's state of each partition, or the error for it.

        An entry that is not new is answered without the store, from our current state. Another
        command of the round may have changed that state since `next_part`.
        """
        roles: list[PartitionAssignment | ErrorCode] = []
        for one in self._assignments:
            known = None if one.name in self._new else _own(self._parts, one)
            is_confirmed = is_known(one.topic_id, one.state, known)
            fact = known if is_confirmed else facts.get(one.name)
            role = role_of(self._parts.replicas.broker, one.topic_id, one.state, fact)
            roles.append(role if isinstance(role, ErrorCode) else one._replace(state=role))
        return roles

    async def _apply(self, taken: list[PartitionAssignment]) -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        for first in range(0, max(1, len(taken)), AT_ONCE):
            if first:
                await asyncio.sleep(0)
            self._parts.commands.check(self._request)
            codes += self._parts.replicas.apply_all(taken[first : first + AT_ONCE])
        return codes

    def response(self) -> LeaderAndIsrResponse:
        topics = [
            LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=found)
            for topic_id, found in self._errors.items()
        ]
        return LeaderAndIsrResponse(error_code=0, topics=topics)


def _own(parts: RoleParts, assignment: PartitionAssignment) -> PartitionFact | None:
    """The state that the store confirmed earlier, to us as a replica or as the controller."""
    service = parts.controller()
    name = None if service is None else service.topic_names.get(assignment.topic_id)
    if service is not None and name == assignment.name.topic and service.knows(assignment.name):
        return PartitionFact(assignment.topic_id, service.core.partitions[assignment.name])
    partition = parts.replicas.find(assignment.topic_id, assignment.name.partition)
    return None if partition is None else PartitionFact(assignment.topic_id, partition.state)


def _is_fresh(replicas: Replicas, assignment: PartitionAssignment) -> bool:
    partition = replicas.find(assignment.topic_id, assignment.name.partition)
    known = None if partition is None else partition.replica.leader_epoch
    return needs_settings(replicas.broker, assignment.state, known)


async def _find_leaders(
    parts: RoleParts, request: LeaderAndIsrRequest, taken: list[PartitionAssignment]
) -> bool:
    """Update the addresses of the leaders that we follow: from the store, if they are new.

    Returns whether the read was fruitless: none of the addresses has changed.
    """
    named = {
        BrokerId(one.broker_id): Endpoint(one.host_name, one.port) for one in request.live_leaders
    }
    peers, own_id = parts.peers, parts.replicas.broker
    wanted: dict[BrokerId, Endpoint | None] = {}
    for leader in dict.fromkeys(one.state.leader for one in taken):
        known = peers.listens_at(leader)
        if leader not in (own_id, NO_BROKER) and (known is None or named.get(leader) != known):
            wanted[leader] = known
    if wanted:
        for one in (await read_brokers(parts.store, list(wanted))).values():
            peers.update(one.id, one.endpoint)
    return bool(wanted) and all(peers.listens_at(one) == at for one, at in wanted.items())


def _state(assignment: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        replicas=tuple(map(BrokerId, assignment.replicas)),
        isr=tuple(map(BrokerId, assignment.isr)),
        leader=BrokerId(assignment.leader),
        leader_epoch=LeaderEpoch(assignment.leader_epoch),
        partition_epoch=PartitionEpoch(assignment.partition_epoch),
        adding=tuple(map(BrokerId, assignment.adding_replicas)),
        removing=tuple(map(BrokerId, assignment.removing_replicas)),
    )
