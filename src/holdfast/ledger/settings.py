"""What a client's configuration says about the promises it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.ledger.errors import LedgerError

ALL: Final = -1
_ACKS: Final = {"all": ALL, "-1": ALL, "0": 0, "1": 1}
_TRUE: Final = ("true", "1", "t", "yes", "on")


def is_true(value: Any) -> bool:
    """As librdkafka reads a boolean."""
    return str(value).lower() in _TRUE


def acks(config: Mapping[str, Any]) -> int:
    """-1 for all, as in Kafka's protocol."""
    if idempotent(config):
        return ALL
    topic = config.get("default.topic.config", {})
    for where in (config, topic):
        for name in ("acks", "request.required.acks"):
            if name in where:
                given = str(where[name]).lower()
                # What librdkafka refuses, its own constructor tells.
                return _ACKS.get(given, ALL)
    return ALL


def idempotent(config: Mapping[str, Any]) -> bool:
    """Whether the broker drops what a retry sends twice."""
    return is_true(config.get("enable.idempotence", False)) or "transactional.id" in config


def refuse_silence(config: Mapping[str, Any]) -> None:
    """A ledger needs every answer, also the good ones."""
    if is_true(config.get("delivery.report.only.error", False)):
        raise LedgerError(
            "delivery.report.only.error hides acknowledgements from the ledger",
            hint="leave it out; look at the error in your on_delivery",
        )
