"""The inputs of components, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core import Leader
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.disk import SimDisk
from holdfast.lab.world.messages import Envelope, ProduceRequest, Record
from holdfast.model import BatchHeader, BrokerId

if TYPE_CHECKING:
    from holdfast.search.states.step_cache import Parts

PRODUCER = "producer"

# Inputs of a broker.


def _deliver(parts: Parts, broker: SimBroker, message: int) -> None:
    broker.receive(parts.envelope(message))


def _produce(parts: Parts, broker: SimBroker, key: int) -> None:
    records = (Record(f"r{key}", key),)
    request = ProduceRequest(PRODUCER, key, parts.acks, BatchHeader(1), records)
    broker.receive(Envelope(PRODUCER, broker.name, request, None, 0))


def _tick(_parts: Parts, broker: SimBroker, ahead_ms: int) -> None:
    broker.run(broker.replica.tick(ahead_ms))


def _peer_died(_parts: Parts, broker: SimBroker, peer: int) -> None:
    """A peer's connections broke: its parked fetch is gone, and ours gets no response."""
    broker.forget_fetch(BrokerId(peer))
    waits = broker.outstanding
    if waits and waits.asked.leader == peer:
        broker.connection_lost(waits.number)


def _propose(_parts: Parts, broker: SimBroker) -> None:
    role = broker.replica.role
    if isinstance(role, Leader) and role.insync.proposal:
        broker.send_proposal(role.insync.proposal)


def _expand(_parts: Parts, broker: SimBroker) -> None:
    broker.release_expansions()
    broker.holds_expansions = True


def _start(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.fails = broker.disk.unreadable = ""
    broker.disk.forgets_writes = False
    broker.start()


def _lose_disk(parts: Parts, broker: SimBroker) -> None:
    if broker.disk.end_offset:
        parts.stand.invariants.lost_records(broker.name, "lost its disk")
    broker.disk = SimDisk()


def _lose_epochs(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.epoch_checkpoint_lost = True


def _fail_disk(_parts: Parts, broker: SimBroker) -> None:
    broker.disk.fails = "input/output error"


BROKER_INPUTS: dict[str, Callable[..., None]] = {
    "deliver": _deliver,
    "produce": _produce,
    "again-fetch": lambda _parts, broker: broker.maybe_fetch(),
    "tick": _tick,
    "crash": lambda _parts, broker: broker.crash(),
    "power": lambda _parts, broker: broker.lose_power(),
    "stop": lambda _parts, broker: broker.stop(),
    "start": _start,
    "peer-died": _peer_died,
    "lost": lambda _parts, broker, number: broker.connection_lost(number),
    "shutdown": lambda _parts, broker: broker.ask_to_stop(),
    "rejoin": lambda _parts, broker: broker.session_lost(),
    "again-registration": lambda _parts, broker: broker.register_if_needed(),
    "again-proposal": _propose,
    "expand": _expand,
    "flush": lambda _parts, broker: broker.flush(broker.disk.end_offset),
    "lose-disk": _lose_disk,
    "lose-epochs": _lose_epochs,
    "fail-disk": _fail_disk,
}


# Inputs of the controller and the store.


def _to_controller(parts: Parts, message: int) -> None:
    parts.stand.controller.receive(parts.envelope(message))


def _register(parts: Parts, message: int) -> None:
    parts.stand._on_register(parts.envelope(message))


def _elect(parts: Parts, broker: int) -> None:
    stand = parts.stand
    stand.controller.run(stand.controller.core.elect(stand.partition, BrokerId(broker)))


def _lower(parts: Parts) -> None:
    stand = parts.stand
    stand.controller.alter_minimum(stand.store.settings.min_insync_replicas - 1)


def _resend(parts: Parts, unconfirmed: tuple[int, ...], asks: bool) -> None:
    controller = parts.stand.controller
    for broker in map(BrokerId, unconfirmed):
        controller._send_until_confirmed(broker, controller.unconfirmed[broker])
    if asks:
        controller.run(controller.core.ask_again())


CONTROL_INPUTS: dict[str, Callable[..., None]] = {
    "deliver": _to_controller,
    "register": _register,
    "expire": lambda parts, name: parts.stand.expire_session(name),
    "elect": _elect,
    "failover": lambda parts: parts.stand.new_controller(),
    "again": _resend,
    "lower": _lower,
    "answer": lambda parts: parts.stand.controller.settings_answered(),
}
