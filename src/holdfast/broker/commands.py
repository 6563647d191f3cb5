"""Whether a command of a controller is for this life of this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import ControllerEpoch, ErrorCode

if TYPE_CHECKING:
    from holdfast.broker.node import Broker


def refusal_of(broker: Broker, controller_epoch: int, broker_epoch: int) -> ErrorCode:
    """NONE if the command may be carried out.

    A command to a former life is refused by the broker's epoch: it could make a restarted broker
    lead where it has lost records. A former controller is refused by its own epoch. That one is
    looked at last, because a higher one is kept: a stranger's would lock the controller out.
    """
    is_over = broker.membership.is_leaving or broker_epoch < 0
    if is_over or broker_epoch != broker.life.broker_epoch:
        error = ErrorCode.STALE_BROKER_EPOCH
    else:
        error = broker.life.accept_controller(ControllerEpoch(controller_epoch))
    if error and broker.trace is not None:
        broker.trace.command_refused(controller_epoch, error)
    return error
