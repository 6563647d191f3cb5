"""A controller's commands: whether they are for us, and carrying them out one after the other.

A command to an earlier incarnation of this broker is refused by the broker epoch: it could make a
restarted broker lead where it has lost records. An earlier controller is refused by its epoch. Both
are numbers that anybody can guess, so nothing else in a command is believed: what it names is read
in the coordination store, and the store's word is carried out (`core.confirmation`).

One command is under way at a time, from its reads to its end. Otherwise one that has read that this
broker hosts a partition no more could remove the log after a later one has brought it back.

A look at who the controller is answers for every command that came before the look. So the many
made-up controller epochs that a stranger can send cost one read, and the controller's own commands
do not wait for one read each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.broker.calls import Call
from holdfast.broker.store_facts import read_controller
from holdfast.broker.tasks import answer_by
from holdfast.broker.topic_names import why_not_a_name
from holdfast.coordination import StoreError
from holdfast.core import Judgement
from holdfast.model import BrokerId, ControllerEpoch, ErrorCode
from holdfast.protocol import Response
from holdfast.protocol.messages.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

if TYPE_CHECKING:
    from holdfast.broker.node import Broker

MOST_PARTITIONS: Final = 200_000
"""In one command: as many as a whole cluster of Kafka with ZooKeeper was meant to have."""
MOST_BROKERS: Final = 10_000

Command = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
C = TypeVar("C", LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)


class CommandRefusedError(Exception):
    """The command may not be carried out, or no further."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Commands:
    """The commands that this broker gets."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turn = asyncio.Lock()
        self._came = 0
        """Commands so far."""
        self._covered = 0
        """Of these, how many had come before the controller was last read in the store."""

    def obey(
        self,
        call: Call,
        command: C,
        work: Callable[[Broker, C], Awaitable[Response]],
        refused: Callable[[ErrorCode], Response],
    ) -> None:
        """Answer with what the work gives, or with a refusal that changed nothing."""
        try:
            if not _is_well_formed(command):
                raise CommandRefusedError(ErrorCode.INVALID_REQUEST)
            self._judge(command, is_newest=False)
        except CommandRefusedError as error:
            self._trace(command, error)
            call.answer(refused(error.code))
            return
        self._came += 1
        answer_by(self._broker, call, self._carry_out(self._came, command, work, refused))

    async def _carry_out(
        self,
        number: int,
        command: C,
        work: Callable[[Broker, C], Awaitable[Response]],
        refused: Callable[[ErrorCode], Response],
    ) -> Response:
        async with self._turn:
            try:
                is_newest = number <= self._covered
                if self._judge(command, is_newest=is_newest) is Judgement.ASK_STORE:
                    await self._confirm_controller()
                    self._judge(command, is_newest=True)
                return await work(self._broker, command)
            except CommandRefusedError as error:
                self._trace(command, error)
                return refused(error.code)
            except StoreError:
                # Neither confirmed nor refuted: the controller sends it again.
                return refused(ErrorCode.REQUEST_TIMED_OUT)

    async def _confirm_controller(self) -> None:
        came = self._came
        fact = await read_controller(self._broker.store)
        self._broker.life.confirm_controller(fact)
        self._covered = came

    def check(self, command: Command) -> None:
        """Raise if the command may not go on: we or the controller may have changed meanwhile."""
        self._judge(command, is_newest=True)

    def _judge(self, command: Command, *, is_newest: bool) -> Judgement:
        broker = self._broker
        epoch = command.broker_epoch
        if broker.membership.is_leaving or epoch < 0 or epoch != broker.life.broker_epoch:
            raise CommandRefusedError(ErrorCode.STALE_BROKER_EPOCH)
        judgement = broker.life.judge_controller(
            BrokerId(command.controller_id),
            ControllerEpoch(command.controller_epoch),
            is_newest=is_newest,
        )
        if judgement is Judgement.REFUSE:
            raise CommandRefusedError(ErrorCode.STALE_CONTROLLER_EPOCH)
        return judgement

    def _trace(self, command: Command, error: CommandRefusedError) -> None:
        if self._broker.trace is not None:
            self._broker.trace.command_refused(command.controller_epoch, error.code)


def _is_well_formed(command: Command) -> bool:
    """Names become directories and paths in the store, and numbers become work."""
    if isinstance(command, UpdateMetadataRequest) and len(command.live_brokers) > MOST_BROKERS:
        return False
    if sum(len(topic.partition_states) for topic in command.topic_states) > MOST_PARTITIONS:
        return False
    return all(
        why_not_a_name(topic.topic_name) is None
        and all(one.partition_index >= 0 for one in topic.partition_states)
        for topic in command.topic_states
    )
