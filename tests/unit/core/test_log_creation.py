"""An empty log for a partition whose log may be in an offline directory."""

from __future__ import annotations

import pytest

from holdfast.core import may_begin_empty
from holdfast.model import BrokerId, PartitionEpoch, PartitionState

ONE, TWO = BrokerId(1), BrokerId(2)


@pytest.mark.parametrize(
    ("epoch", "isr", "adding", "may"),
    [
        (1, (ONE, TWO), (), True),
        (2, (ONE, TWO), (), False),
        (2, (TWO,), (), False),
        (2, (TWO,), (ONE,), True),
        (2, (ONE, TWO), (ONE,), False),
    ],
)
def test_only_what_is_new_begins_empty_while_a_directory_is_offline(
    epoch: int, isr: tuple[BrokerId, ...], adding: tuple[BrokerId, ...], may: bool
) -> None:
    state = PartitionState((ONE, TWO), isr, TWO, partition_epoch=PartitionEpoch(epoch))
    state = state._replace(adding=adding)
    assert may_begin_empty(ONE, state, is_directory_offline=True) is may
    assert may_begin_empty(ONE, state, is_directory_offline=False)
