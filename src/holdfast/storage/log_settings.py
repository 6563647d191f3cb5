"""The settings of one log, with Kafka's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

FOREVER = 2**63 - 1
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings by their topic-level names, with "_" for "."."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 168 * _HOUR_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 168 * _HOUR_MS
    """-1: forever."""
    retention_bytes: int = -1
    """-1: no limit."""
    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = 24 * _HOUR_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = _MINUTE_MS
    max_message_bytes: int = 1_048_588
    producer_id_expiration_ms: int = 24 * _HOUR_MS

    @property
    def is_compacted(self) -> bool:
        """Whether the log is compacted, so that offsets may be missing."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether retention may delete old segments."""
        return "delete" in self.cleanup_policy
