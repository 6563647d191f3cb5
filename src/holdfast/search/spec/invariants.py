"""The invariants, evaluated for many states at the same time."""

from __future__ import annotations

from typing import Final

import numpy as np

from holdfast.search.spec.layout import Column, Flags
from holdfast.search.spec.view import View, has

WEAK_ISR: Final = "weak-isr"
STRONG_ISR: Final = "strong-isr"
INVARIANTS: Final = {
    WEAK_ISR: "all that a presumed leader has committed is held by all members of its own ISR",
    STRONG_ISR: "all that a presumed leader has committed is held by the controller's ISR",
}


def broken(view: View, invariant: str) -> Flags:
    """The states in which an ISR member lacks a record that a presumed leader has committed."""
    found = np.zeros(view.agreed_isr.shape, np.bool_)
    for leader in range(view.bounds.replicas):
        isr = view.isr[leader] if invariant == WEAK_ISR else view.agreed_isr
        for member in range(view.bounds.replicas):
            differs = _differs(view, leader, member)
            found |= view.presumes[leader] & has(isr, member) & differs
    return found


def _differs(view: View, leader: int, member: int) -> Flags:
    committed: Column = view.high_watermark[leader]
    found = np.zeros(committed.shape, np.bool_)
    for offset, (ours, theirs) in enumerate(zip(view.log[leader], view.log[member], strict=True)):
        found |= (committed > offset) & ((ours != theirs) | (ours == 0))
    return found
