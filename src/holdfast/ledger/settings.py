"""The producer settings that decide what an acknowledgement means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.ledger.errors import LedgerError

ALL: Final = -1
_ACKS: Final = {"all": ALL, "-1": ALL, "0": 0, "1": 1}
_TRUE: Final = ("true", "1", "t", "yes", "on")


def is_true(value: Any) -> bool:
    """Parse a boolean as librdkafka does."""
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
                # librdkafka's constructor refuses invalid values.
                return _ACKS.get(given, ALL)
    return ALL


def idempotent(config: Mapping[str, Any]) -> bool:
    """Whether the broker discards the duplicates of a retry."""
    return is_true(config.get("enable.idempotence", False)) or "transactional.id" in config


def refuse_silence(config: Mapping[str, Any]) -> None:
    """Refuse a setting that hides successful answers: a ledger needs every answer."""
    if is_true(config.get("delivery.report.only.error", False)):
        raise LedgerError(
            "delivery.report.only.error hides acknowledgements from the ledger",
            hint="leave it out; look at the error in your on_delivery",
        )
