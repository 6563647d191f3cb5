"""Whole brokers and a stranger who sends the controller's commands: only the store decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.broker.apis import leader_and_isr, stop_replica, update_metadata
from holdfast.broker.metadata.metadata_cache import KnownBroker
from holdfast.broker.settings.listeners import Endpoint
from holdfast.core import BrokerIncarnation, ControllerFact, Judgement
from holdfast.model import BrokerId, ControllerEpoch
from holdfast.simulation import simulate

WITHIN = 6
"""Seeds, one of which must catch a broker that believes the stranger."""


def forged(seed: int, *others: str) -> tuple[str, ...]:
    plan = {"faults": ("forged-command", *others), "fault_every_ms": 100, "send_every_ms": 60}
    return simulate(seed, plan).failures


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", [(), ("kill", "controller-loss", "store-away")])
def test_a_stranger_can_do_nothing(seed: int, others: tuple[str, ...]) -> None:
    assert forged(seed, *others) == ()


def believe_epoch(
    life: BrokerIncarnation, broker: BrokerId, epoch: ControllerEpoch, *, is_newest: bool
) -> Judgement:
    """As before the store was asked: any higher epoch is a newer controller."""
    del is_newest
    if epoch < life.controller.epoch:
        return Judgement.REFUSE
    life.confirm_controller(ControllerFact(epoch, broker))
    return Judgement.OBEY


def believe_role(_: Any, __: Any, state: Any, ___: Any) -> Any:
    return state


def believe_stop(*_: Any) -> bool:
    return True


async def believe_addresses(broker: Any, request: Any) -> dict[BrokerId, KnownBroker]:
    del broker
    return {
        BrokerId(one.id): KnownBroker(
            BrokerId(one.id), Endpoint(one.endpoints[0].host, one.endpoints[0].port), None
        )
        for one in request.live_brokers
    }


BELIEVERS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a controller epoch": (BrokerIncarnation, "judge_controller", believe_epoch),
    "a role": (leader_and_isr, "role_of", believe_role),
    "that a replica is gone": (stop_replica, "is_removed", believe_stop),
    "where brokers listen": (update_metadata, "_brokers", believe_addresses),
}


@pytest.mark.slow
@pytest.mark.parametrize("believed", BELIEVERS)
def test_a_broker_that_believes_a_stranger_is_caught(
    believed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, believe = BELIEVERS[believed]
    monkeypatch.setattr(where, name, believe)
    # A controller that is locked out shows when there is something to say.
    others = ("session-expiry",) if where is BrokerIncarnation else ()
    assert any(forged(seed, *others) for seed in range(WITHIN))
