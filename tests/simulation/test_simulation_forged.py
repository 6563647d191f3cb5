"""Whole brokers receive forged controller commands: only the coordination store counts."""

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
"""At least one of so many seeds must find a broker that trusts a forged command."""


def forged(seed: int, *others: str) -> tuple[str, ...]:
    plan = {"faults": ("forged-command", *others), "fault_every_ms": 100, "send_every_ms": 60}
    return simulate(seed, plan).failures


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", [(), ("kill", "controller-loss", "store-away")])
def test_forged_commands_have_no_effect(seed: int, others: tuple[str, ...]) -> None:
    assert forged(seed, *others) == ()


def trust_epoch(
    incarnation: BrokerIncarnation, broker: BrokerId, epoch: ControllerEpoch, *, is_newest: bool
) -> Judgement:
    """Without the store's confirmation: any higher epoch is a newer controller."""
    del is_newest
    if epoch < incarnation.controller.epoch:
        return Judgement.REFUSE
    incarnation.confirm_controller(ControllerFact(epoch, broker))
    return Judgement.OBEY


def trust_role(_: Any, __: Any, state: Any, ___: Any) -> Any:
    return state


def trust_stop(*_: Any) -> bool:
    return True


async def trust_addresses(_: Any, request: Any) -> dict[BrokerId, KnownBroker]:
    return {
        BrokerId(one.id): KnownBroker(
            BrokerId(one.id), Endpoint(one.endpoints[0].host, one.endpoints[0].port), None
        )
        for one in request.live_brokers
    }


TRUSTING: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a controller epoch": (BrokerIncarnation, "judge_controller", trust_epoch),
    "a role": (leader_and_isr, "role_of", trust_role),
    "that a replica is gone": (stop_replica, "is_removed", trust_stop),
    "where brokers listen": (update_metadata, "_brokers", trust_addresses),
}


@pytest.mark.slow
@pytest.mark.parametrize("trusted", TRUSTING)
def test_a_broker_that_trusts_a_forged_command_is_caught(
    trusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, trust = TRUSTING[trusted]
    monkeypatch.setattr(where, name, trust)
    # A controller that was locked out shows only when it has something to send.
    others = ("session-expiry",) if where is BrokerIncarnation else ()
    assert any(forged(seed, *others) for seed in range(WITHIN))
