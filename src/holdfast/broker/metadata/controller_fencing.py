"""The controller's commands: whether they are for us, and how they are carried out in parts.

The broker epoch fences commands to an earlier incarnation of this broker, which could make a
restarted broker lead where it has lost records. The controller epoch fences an earlier controller.
Anybody can guess both numbers, so the broker trusts nothing else in a command: it reads what the
command names in the coordination store, and applies what it read (`command_confirmation`).

Commands are carried out in rounds. A round takes the next part of the oldest command of each
connection, reads what all of them need with one read of the store, and carries out one part after
the other. One round is
in progress at a time, from its read to its end. Otherwise a command that has read that this broker
no longer hosts a partition could remove the log after a later command has restored it.

So a forged command delays the controller's by one part at most, however large it is, and however
many commands its sender has waiting. A command that the store contradicts ends with
that part; a controller sends it again. After a fruitless read the next round waits
(`core.LookPace`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from holdfast.broker.clock import Clock
from holdfast.broker.metadata.store_facts import Facts, read_controller, read_partitions
from holdfast.broker.metadata.topic_names import invalid_name_reason
from holdfast.broker.network.calls import Call
from holdfast.broker.network.connection import Connection
from holdfast.broker.tasks import RequestTasks
from holdfast.coordination import Store, StoreError
from holdfast.core import BrokerIncarnation, Found, Judgement, LookPace
from holdfast.model import BrokerEpoch, BrokerId, ControllerEpoch, ErrorCode, TopicPartition
from holdfast.protocol import Response
from holdfast.protocol.messages.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

MOST_PARTITIONS: Final = 200_000
"""In one command. A controller sends more in several (`controller.broker_channel`)."""
PART: Final = 1_000
"""Partitions of one command in a round."""
MOST_COMMANDS: Final = 20
"""Commands in a round, one per connection."""
MOST_BROKERS: Final = 10_000

Command = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
C = TypeVar("C", LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)


class CommandRefusedError(Exception):
    """The command must not be carried out, or not continued."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Registration(Protocol):
    """This broker's registration, for which a command must be."""

    incarnation: BrokerIncarnation
    is_leaving: bool


class Work(Protocol):
    """One command, part by part."""

    @property
    def is_done(self) -> bool:
        """Whether no part is left."""

    def next_part(self) -> Sequence[TopicPartition]:
        """Go to the next part; returns the partitions to read in the store for it."""

    async def carry_out(self, facts: Facts) -> Found:
        """Carry out this part according to the store."""

    def response(self) -> Response:
        """The response for all parts."""


class _Waiting:
    """A command without an answer."""

    __slots__ = ("answer", "bug", "command", "connection", "found", "make_work", "refused", "work")

    def __init__(
        self,
        connection: Connection,
        command: Command,
        make_work: Callable[[], Work],
        refused: Callable[[ErrorCode], Response],
    ) -> None:
        self.connection = connection
        self.command = command
        self.make_work = make_work
        self.refused = refused
        self.work: Work | None = None
        self.found = Found.AS_COMMANDED
        self.answer: Response | None = None
        self.bug: Exception | None = None

    @property
    def is_over(self) -> bool:
        return self.answer is not None or self.bug is not None


class Commands:
    """The controller's commands to this broker."""

    def __init__(
        self,
        registration: Registration,
        store: Store,
        clock: Clock,
        tasks: RequestTasks,
        refused: Callable[[int, ErrorCode], None] | None,
    ) -> None:
        self._registration = registration
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._on_refused = refused
        self._turn = asyncio.Lock()
        self._waiting: dict[_Waiting, None] = {}
        self._pace = LookPace()

    def obey(
        self,
        call: Call,
        command: C,
        work: Callable[[C], Work],
        refused: Callable[[ErrorCode], Response],
    ) -> None:
        """Carry out a command and answer, or refuse it without any change."""
        try:
            if not _is_well_formed(command):
                raise CommandRefusedError(ErrorCode.INVALID_REQUEST)
            self._judge(command, is_newest=False)
        except CommandRefusedError as error:
            self._trace(command, error)
            call.answer(refused(error.code))
            return
        one = _Waiting(call.connection, command, lambda: work(command), refused)
        self._waiting[one] = None
        self._tasks.answer_by(call, self._answer_to(one))

    async def _answer_to(self, one: _Waiting) -> Response:
        """The command whose turn it is carries out a round for all."""
        try:
            while not one.is_over:
                async with self._turn:
                    if not one.is_over:
                        await self._round()
        finally:
            self._waiting.pop(one, None)
        if one.bug is not None:
            raise one.bug
        assert one.answer is not None
        return one.answer

    async def _round(self) -> None:
        """Carry out the next part of some waiting commands."""
        clock = self._clock
        if wait_ms := self._pace.wait_ms(clock.now_ms()):
            await asyncio.sleep(wait_ms / 1000)
        some = self._next_ones()
        try:
            await self._confirm_controller(some)
            facts = await self._look_up(some)
        except StoreError:
            for one in some:
                _send_again(one)
            return
        for one in some:
            if not one.is_over:
                await self._do_part(one, facts)
        self._pace.looked(clock.now_ms(), [one.found for one in some])

    def _next_ones(self) -> list[_Waiting]:
        """The oldest command of each connection, and of the connections those that waited longest.

        A connection's commands keep their order, and a client with many commands delays no other.
        """
        oldest: dict[Connection, _Waiting] = {}
        for one in self._waiting:
            if not one.is_over:
                oldest.setdefault(one.connection, one)
        some = list(oldest.values())[:MOST_COMMANDS]
        turns = {one.connection: None for one in some}
        for one in [one for one in self._waiting if one.connection in turns]:
            self._waiting[one] = self._waiting.pop(one)
        return some

    async def _confirm_controller(self, some: list[_Waiting]) -> None:
        """Refuse commands whose sender is not the controller; one read of the store for all."""
        unsure = [one for one in some if self._is_unsure(one, is_newest=False)]
        if unsure:
            self._registration.incarnation.confirm_controller(await read_controller(self._store))
        for one in unsure:
            self._is_unsure(one, is_newest=True)
            one.found = Found.CONTRADICTION if one.is_over else Found.AS_COMMANDED

    def _is_unsure(self, one: _Waiting, *, is_newest: bool) -> bool:
        try:
            return self._judge(one.command, is_newest=is_newest) is Judgement.ASK_STORE
        except CommandRefusedError as error:
            self._refuse(one, error)
            return False

    async def _look_up(self, some: list[_Waiting]) -> Facts:
        wanted: dict[TopicPartition, None] = {}
        for one in some:
            if not one.is_over:
                with _noting_bugs(one):
                    one.work = one.work or one.make_work()
                    wanted.update(dict.fromkeys(one.work.next_part()))
                await asyncio.sleep(0)
        return await read_partitions(self._store, list(wanted)) if wanted else {}

    async def _do_part(self, one: _Waiting, facts: Facts) -> None:
        assert one.work is not None
        try:
            with _noting_bugs(one):
                self.check(one.command)
                one.found = await one.work.carry_out(facts)
                if one.work.is_done:
                    one.answer = one.work.response()
                elif one.found is Found.CONTRADICTION:
                    _send_again(one)
        except CommandRefusedError as error:
            self._refuse(one, error)
        except StoreError:
            _send_again(one)

    def _refuse(self, one: _Waiting, error: CommandRefusedError) -> None:
        self._trace(one.command, error)
        one.answer = one.refused(error.code)

    def check(self, command: Command) -> None:
        """Raise if the command must not continue: an epoch may have changed meanwhile."""
        self._judge(command, is_newest=True)

    def _judge(self, command: Command, *, is_newest: bool) -> Judgement:
        incarnation, epoch = self._registration.incarnation, BrokerEpoch(command.broker_epoch)
        if self._registration.is_leaving or not incarnation.is_addressed(epoch):
            raise CommandRefusedError(ErrorCode.STALE_BROKER_EPOCH)
        judgement = incarnation.judge_controller(
            BrokerId(command.controller_id),
            ControllerEpoch(command.controller_epoch),
            is_newest=is_newest,
        )
        if judgement is Judgement.REFUSE:
            raise CommandRefusedError(ErrorCode.STALE_CONTROLLER_EPOCH)
        return judgement

    def _trace(self, command: Command, error: CommandRefusedError) -> None:
        if self._on_refused is not None:
            self._on_refused(command.controller_epoch, error.code)


def _send_again(one: _Waiting) -> None:
    """The command is neither confirmed nor refused: the controller sends it again."""
    one.answer = one.refused(ErrorCode.REQUEST_TIMED_OUT)


@contextmanager
def _noting_bugs(one: _Waiting) -> Iterator[None]:
    """A bug in one command does not affect the others of the round."""
    try:
        yield
    except (CommandRefusedError, StoreError):
        raise
    except Exception as error:  # noqa: BLE001  # `answer_by` reports it
        one.bug = error


def _is_well_formed(command: Command) -> bool:
    """Check names and counts: names become directories and store paths, counts become work."""
    if isinstance(command, UpdateMetadataRequest) and len(command.live_brokers) > MOST_BROKERS:
        return False
    if sum(len(topic.partition_states) for topic in command.topic_states) > MOST_PARTITIONS:
        return False
    return all(
        invalid_name_reason(topic.topic_name) is None
        and all(one.partition_index >= 0 for one in topic.partition_states)
        for topic in command.topic_states
    )
