"""The properties of a component's state that the search reads, computed once per state."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core import Leader
from holdfast.lab.world.broker import SimBroker
from holdfast.lab.world.controller import SimController
from holdfast.lab.world.store import SimStore
from holdfast.model import NO_BROKER_EPOCH


class BrokerView(NamedTuple):
    """The properties of a broker's state that the search reads."""

    alive: bool
    leads: bool
    leader_epoch: int
    high_watermark: int
    keys: tuple[int, ...]
    can_fetch: bool
    follows: int
    """The broker from which it would fetch."""
    parked: tuple[int, ...]
    """Ids of followers whose fetches are parked here."""
    known_numbers: tuple[tuple[int, int], ...]
    """Followers, and the fetch numbers of theirs that this broker still has."""
    rested: bool
    lagging: bool
    """Whether a late clock tick would shrink the ISR."""
    proposal: bool
    candidates: bool
    broker_epoch: int
    unflushed: bool
    disk_works: bool
    has_epochs: bool


class ControlView(NamedTuple):
    """The properties of the controller and the store that the search reads."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    sessions: dict[int, int]
    unconfirmed: tuple[int, ...]
    asked: bool
    controller_epoch: int
    minimum: int
    """min.insync.replicas in the store."""
    awaits_settings: bool
    """Whether the store has changed settings and the controller does not know it yet."""


def broker_view(broker: SimBroker, late_ms: int) -> BrokerView:
    """A broker's view. `late_ms`: after so long a follower that is behind counts as lagging."""
    replica, disk = broker.replica, broker.disk
    role = replica.role
    alive = broker.alive
    leads = alive and isinstance(role, Leader)
    insync = role.insync if leads and isinstance(role, Leader) else None
    lagging = (
        insync is not None
        and not insync.proposal
        and any(
            one in insync.followers
            and insync.followers[one].lags(
                replica.log.log_end_offset, insync.settings, insync.rules.isr_lag_rule, late_ms
            )
            for one in insync.isr
        )
    )
    fetches = alive and not broker.outstanding and not replica.has_failed
    asks = replica.next_fetch()
    parked = broker.parked if leads else {}
    return BrokerView(
        alive=alive,
        leads=leads,
        leader_epoch=replica.leader_epoch,
        high_watermark=replica.log.high_watermark,
        keys=tuple(disk.keys),
        can_fetch=fetches and asks is not None,
        follows=asks.leader if asks else 0,
        parked=tuple(parked),
        known_numbers=(
            *((one, asked.number) for one, asked in parked.items()),
            *((one, newest[1]) for one, newest in broker.newest_fetch.items() if alive),
        ),
        rested=insync is None or insync.expand_rested,
        lagging=lagging,
        proposal=insync is not None and insync.proposal is not None,
        candidates=alive and bool(broker.candidates),
        broker_epoch=broker.incarnation.broker_epoch if alive else NO_BROKER_EPOCH,
        unflushed=disk.flushed_offset < disk.end_offset,
        disk_works=not disk.fails and not disk.forgets_writes,
        has_epochs=bool(broker._epochs) and not disk.epoch_checkpoint_lost,
    )


def control_view(controller: SimController, store: SimStore) -> ControlView:
    (state,) = store.partitions.values()
    return ControlView(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        sessions={one: known.broker_epoch for one, known in store.sessions.items()},
        unconfirmed=tuple(sorted(controller.unconfirmed)),
        asked=controller.core.log_ends.is_waiting,
        controller_epoch=store.controller_epoch,
        minimum=store.settings.min_insync_replicas,
        awaits_settings=controller.awaits_settings,
    )
