"""The rules of a replica: switches between historical variants, and guards.

By default every switch has the safe, modern value and every guard is on. The other values exist so
that the lab can show which records they lose. A broker always runs with the
defaults of `truncation`, `isr_update`, `isr_expand`, `isr_lag_rule`, `commit_rule` and `guards`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum


class Truncation(Enum):
    """What a follower truncates before it copies from a leader."""

    HIGH_WATERMARK = "high-watermark"
    LEADER_EPOCH = "leader-epoch"


class IsrUpdate(Enum):
    """When a leader uses an ISR that it has proposed."""

    OPTIMISTIC = "optimistic"
    COMMITTED = "committed"


class IsrExpand(Enum):
    """Whether a joiner is checked again at the moment it is added."""

    UNGUARDED = "unguarded"
    RECHECKED = "rechecked"


class IsrLagRule(Enum):
    """When a follower has fallen out of sync."""

    MESSAGES = "messages"
    SILENCE = "silence"
    TIME = "time"


class FlushRule(Enum):
    """When a log is forced from the page cache to the disk."""

    PAGE_CACHE = "page-cache"
    EVERY_N_MESSAGES = "every-n-messages"
    EVERY_T_MS = "every-t-ms"
    EVERY_N_MESSAGES_OR_T_MS = "every-n-messages-or-t-ms"
    """The first of both: for a topic with flush.messages and flush.ms."""
    EVERY_APPEND = "every-append"


class ReadRule(Enum):
    """Which replicas may serve consumers."""

    LEADER_ONLY = "leader-only"
    ANY_REPLICA = "any-replica"


class CommitRule(Enum):
    """Which replicas must hold a record before it is committed."""

    ISR = "isr"
    MAJORITY = "majority"


def _guard(explanation: str) -> bool:
    """A guard that is on; the explanation says what it demands."""
    value: bool = field(default=True, metadata={"explanation": explanation})
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """One field per guard. False: the lab has switched it off."""

    # After Vanlightly/kafka-tlaplus.
    registration_incarnation: bool = _guard(
        "A broker accepts a registration response only if it names the incarnation that registered."
    )
    higher_epoch_only: bool = _guard(
        "A replica changes its leader, fetches from it and truncates only on a higher leader epoch."
    )
    forget_non_isr_followers: bool = _guard(
        "A leader in a new epoch forgets the positions of followers outside the ISR."
    )
    joiner_position_known: bool = _guard(
        "A joiner of the ISR has fetched from this leader in this epoch."
    )
    joiner_reached_high_watermark: bool = _guard(
        "A joiner of the ISR has reached the leader's high watermark."
    )
    joiner_reached_epoch_start: bool = _guard(
        "A joiner of the ISR has reached the start of the leader's epoch (KAFKA-7128)."
    )
    stale_answer_by_offset: bool = _guard(
        "A follower drops a fetch response if its log end has changed since the request."
    )
    stale_answer_by_epoch: bool = _guard(
        "A follower drops a fetch response of another leader epoch."
    )
    isr_change_partition_epoch: bool = _guard(
        "The controller accepts an ISR change only for the current partition epoch."
    )
    joiner_broker_epoch: bool = _guard(
        "The controller accepts an ISR member only in its current broker epoch (KIP-903)."
    )
    # After the four rules of Kip320.tla.
    fence_fetch: bool = _guard("A leader refuses fetches of another leader epoch (KIP-320).")
    fence_truncation: bool = _guard(
        "Only the leader of the epoch in the request answers where logs diverge (KIP-320)."
    )
    fence_high_watermark: bool = _guard(
        "Only positions reported in this epoch raise the high watermark (KIP-320)."
    )
    fence_isr_expand: bool = _guard(
        "A fetch that is refused by its epoch does not count as a joiner's position (KIP-320)."
    )
    # Each was once missing in a released system.
    answer_names_epoch: bool = _guard(
        "A leader that does not know an epoch names the largest smaller one (KIP-279)."
    )
    truncate_on_missed_epoch: bool = _guard(
        "A follower checks its log on every new epoch, also when the leader is the same "
        "(KAFKA-7164)."
    )
    epoch_at_election: bool = _guard(
        "A leader records its epoch when elected, not with its first record (KAFKA-7415)."
    )
    keep_first_epoch: bool = _guard(
        "A rebuilt epoch cache keeps the log's first epoch (KAFKA-10432)."
    )
    maximal_isr: bool = _guard("The high watermark waits for proposed ISR members too (KIP-497).")
    eligible_leaders: bool = _guard(
        "The high watermark does not move below min.insync.replicas, and a replica that leaves the "
        "ISR then stays eligible (KIP-966)."
    )
    eligible_cleared_first: bool = _guard(
        "The eligible leader replicas are cleared before a lower min.insync.replicas takes effect "
        "(KIP-966)."
    )
    best_log_recovery: bool = _guard(
        "When every eligible replica restarted uncleanly, the best log leads (KIP-966)."
    )
    out_of_range_diverges: bool = _guard(
        "A follower out of the leader's range truncates where the logs diverge, not everything "
        "(KAFKA-2143)."
    )
    offline_on_io_error: bool = _guard(
        "A log that failed once refuses every later append (KAFKA-10778)."
    )
    consumer_epoch_check: bool = _guard(
        "A consumer names the epoch of its position, which reveals a truncation below it (KIP-320)."
    )
    follower_read_bound: bool = _guard(
        "A follower answers a read beyond its high watermark with OFFSET_NOT_AVAILABLE (KIP-392)."
    )
    reread_partition_epoch: bool = _guard(
        "A leader whose ISR change was out of date adopts the stored state (KAFKA-2729)."
    )
    flush_before_claim: bool = _guard(
        "Records that flush.messages makes a replica flush count only after the flush."
    )

    def without(self, *names: str) -> Guards:
        """The same guards with some switched off; names as in `guard_names`."""
        known = dict.fromkeys(guard_names())
        for name in names:
            if name not in known:
                raise KeyError(name)
        return replace(self, **{name.replace("-", "_"): False for name in names})

    def removed(self) -> tuple[str, ...]:
        """The names of the guards that are off."""
        return tuple(name for name in guard_names() if not getattr(self, name.replace("-", "_")))


def guard_names() -> tuple[str, ...]:
    """The names of all guards, as users type them."""
    return tuple(one.name.replace("_", "-") for one in fields(Guards))


def guard_explanation(name: str) -> str:
    """One sentence: what the guard demands."""
    explanations = {one.name: str(one.metadata["explanation"]) for one in fields(Guards)}
    return explanations[name.replace("-", "_")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The variant of the protocol."""

    truncation: Truncation = Truncation.LEADER_EPOCH
    isr_update: IsrUpdate = IsrUpdate.COMMITTED
    isr_expand: IsrExpand = IsrExpand.RECHECKED
    isr_lag_rule: IsrLagRule = IsrLagRule.TIME
    commit_rule: CommitRule = CommitRule.ISR
    guards: Guards = Guards()


SAFE_RULES = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a partition, by Kafka's names and with Kafka's defaults."""

    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = 30_000
    replica_lag_max_messages: int = 4_000
    """Gone since Kafka 0.9; only `IsrLagRule.MESSAGES` looks at it."""
    replica_fetch_wait_max_ms: int = 500
    flush_rule: FlushRule = FlushRule.PAGE_CACHE
    log_flush_interval_messages: int = 1
    """Only the rules with EVERY_N_MESSAGES in their name look at it."""
    log_flush_interval_ms: int = 1_000
    """Only the rules with T_MS in their name look at it."""
    read_rule: ReadRule = ReadRule.LEADER_ONLY

    @property
    def most_unflushed(self) -> int:
        """How many records a replica may claim to hold that no flush has covered."""
        rule = self.flush_rule
        if rule is FlushRule.PAGE_CACHE or rule is FlushRule.EVERY_T_MS:
            return _UNBOUNDED
        return 0 if rule is FlushRule.EVERY_APPEND else self.log_flush_interval_messages - 1

    @property
    def flushes_by_time(self) -> bool:
        """Whether a flush becomes due by time alone. No request waits for such a flush."""
        return self.flush_rule in (FlushRule.EVERY_T_MS, FlushRule.EVERY_N_MESSAGES_OR_T_MS)


_UNBOUNDED = 1 << 63
