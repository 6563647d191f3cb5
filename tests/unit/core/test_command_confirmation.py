"""A command counts only if the coordination store confirms it."""

from __future__ import annotations

import pytest

from holdfast.core import (
    DURING_DELETION,
    LOOK_PAUSE_MS,
    NO_CONTROLLER,
    ControllerFact,
    Found,
    Judgement,
    LookPace,
    PartitionFact,
    is_known,
    is_late_stop,
    is_removed,
    judge_controller,
    needs_settings,
    role_of,
    state_age,
)
from holdfast.model import (
    BrokerId,
    ControllerEpoch,
    ErrorCode,
    LeaderEpoch,
    PartitionEpoch,
    PartitionState,
)
from tests.unit.core.support import A, B, C

ID, OTHER = b"i" * 16, b"o" * 16
KNOWN = ControllerFact(ControllerEpoch(5), A)


def state(
    leader_epoch: int = 3, partition_epoch: int = 7, replicas: tuple[BrokerId, ...] = (A, B)
) -> PartitionState:
    return PartitionState(
        replicas, (A,), A, LeaderEpoch(leader_epoch), PartitionEpoch(partition_epoch)
    )


@pytest.mark.parametrize(
    ("broker", "epoch", "known", "first", "after_reading"),
    [
        (A, 5, KNOWN, Judgement.OBEY, Judgement.OBEY),
        (B, 5, KNOWN, Judgement.REFUSE, Judgement.REFUSE),
        (A, 4, KNOWN, Judgement.REFUSE, Judgement.REFUSE),
        (A, 6, KNOWN, Judgement.ASK_STORE, Judgement.REFUSE),
        (B, 1_000_000, KNOWN, Judgement.ASK_STORE, Judgement.REFUSE),
        (A, 1, NO_CONTROLLER, Judgement.ASK_STORE, Judgement.REFUSE),
        # Nobody was seen to hold this epoch; it may have been read while another was elected.
        (A, 5, ControllerFact(ControllerEpoch(5), None), Judgement.ASK_STORE, Judgement.REFUSE),
        (A, 4, ControllerFact(ControllerEpoch(5), None), Judgement.REFUSE, Judgement.REFUSE),
    ],
)
def test_only_the_stores_controller_commands(
    broker: BrokerId,
    epoch: int,
    known: ControllerFact,
    first: Judgement,
    after_reading: Judgement,
) -> None:
    asked = (broker, ControllerEpoch(epoch), known)
    assert judge_controller(*asked, is_newest=False) is first
    assert judge_controller(*asked, is_newest=True) is after_reading


@pytest.mark.parametrize(
    ("own", "known"),
    [
        (None, False),
        (PartitionFact(ID, None), False),
        (PartitionFact(OTHER, state()), False),
        (PartitionFact(ID, state(3, 6)), False),
        (PartitionFact(ID, state(2, 9)), False),
        (PartitionFact(ID, state(3, 7)), True),
        (PartitionFact(ID, state(4, 1)), True),
    ],
)
def test_what_repeats_our_own_state_needs_no_store(own: PartitionFact | None, known: bool) -> None:
    assert is_known(ID, state(3, 7), own) is known


@pytest.mark.parametrize(
    ("fact", "role"),
    [
        (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionFact(None, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionFact(ID, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionFact(OTHER, state()), ErrorCode.INCONSISTENT_TOPIC_ID),
        (PartitionFact(ID, state(2, 9)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (PartitionFact(ID, state(3, 6)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (PartitionFact(ID, state(3, 7, (A, C))), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (PartitionFact(ID, state(3, 7)), state(3, 7)),
        (PartitionFact(ID, state(4, 8)), state(4, 8)),
    ],
)
def test_a_role_is_the_stores_or_none(
    fact: PartitionFact | None, role: PartitionState | ErrorCode
) -> None:
    forged = state(3, 7)._replace(leader=B, isr=(B,))
    assert role_of(B, ID, forged, fact) == role


@pytest.mark.parametrize(
    ("topic_id", "fact", "removed"),
    [
        (ID, None, False),
        (None, PartitionFact(None, None), False),
        (ID, PartitionFact(ID, None), False),
        (ID, PartitionFact(ID, state(replicas=(A, B))), False),
        (ID, PartitionFact(ID, state(replicas=(A, C))), True),
        (ID, PartitionFact(OTHER, state(replicas=(A, B))), True),
        (ID, PartitionFact(None, None), True),
    ],
)
def test_a_log_goes_only_if_the_store_has_taken_it_from_us(
    topic_id: bytes | None,
    fact: PartitionFact | None,
    removed: bool,
) -> None:
    assert is_removed(B, topic_id, fact) is removed


@pytest.mark.parametrize("vain", [Found.NOTHING_NEW, Found.CONTRADICTION])
def test_a_look_in_vain_delays_the_next_one(vain: Found) -> None:
    pace = LookPace()
    assert pace.wait_ms(1_000) == 0
    pace.looked(1_000, [Found.AS_COMMANDED])
    assert pace.wait_ms(1_000) == 0
    pace.looked(1_000, [Found.AS_COMMANDED, vain])
    assert pace.wait_ms(1_000) == LOOK_PAUSE_MS
    assert pace.wait_ms(1_000 + LOOK_PAUSE_MS - 1) == 1
    assert pace.wait_ms(1_000 + LOOK_PAUSE_MS) == 0


def test_a_look_that_was_of_use_does_not_end_a_pause() -> None:
    pace = LookPace()
    pace.looked(1_000, [Found.CONTRADICTION])
    pace.looked(1_001, [Found.AS_COMMANDED])
    assert pace.wait_ms(1_001) == LOOK_PAUSE_MS - 1


@pytest.mark.parametrize(
    ("broker", "known", "needed"),
    [(A, 2, True), (A, 3, False), (A, 4, False), (A, None, True), (B, 2, False), (B, None, True)],
)
def test_settings_are_read_before_a_leader_epoch_begins(
    broker: BrokerId, known: int | None, needed: bool
) -> None:
    epoch = None if known is None else LeaderEpoch(known)
    assert needs_settings(broker, state(leader_epoch=3), epoch) is needed


@pytest.mark.parametrize(
    ("leader_epoch", "late"),
    [(2, True), (3, False), (4, False), (DURING_DELETION, False), (-1, False)],
)
def test_a_stop_of_an_earlier_epoch_is_late(leader_epoch: int, late: bool) -> None:
    assert is_late_stop(LeaderEpoch(leader_epoch), LeaderEpoch(3)) is late


def test_the_leader_epoch_orders_states_before_the_partition_epoch() -> None:
    states = [state(4, 1), state(3, 8), state(3, 7)]
    assert sorted(states, key=state_age) == states[::-1]
