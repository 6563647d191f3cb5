"""A coordinator's settings, by Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000
"""How long a newcomer may wait for its first JoinGroup answer. It cannot send heartbeats yet, so a
dead one would otherwise keep its place forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What all groups of a broker share."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
