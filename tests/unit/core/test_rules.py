"""Rules and guards: safe by default, switched off only by name."""

from __future__ import annotations

import pytest

from holdfast.core import (
    SAFE_RULES,
    CommitRule,
    FlushRule,
    Guards,
    IsrExpand,
    IsrLagRule,
    IsrUpdate,
    ReadRule,
    Settings,
    Truncation,
    guard_explanation,
    guard_names,
)


def test_the_default_of_every_switch_is_the_safe_one() -> None:
    assert SAFE_RULES.truncation is Truncation.LEADER_EPOCH
    assert SAFE_RULES.isr_update is IsrUpdate.COMMITTED
    assert SAFE_RULES.isr_expand is IsrExpand.RECHECKED
    assert SAFE_RULES.isr_lag_rule is IsrLagRule.TIME
    assert SAFE_RULES.commit_rule is CommitRule.ISR
    assert SAFE_RULES.guards.removed() == ()


def test_settings_have_kafkas_defaults() -> None:
    settings = Settings()
    assert settings.min_insync_replicas == 1
    assert settings.unclean_leader_election_enable is False
    assert settings.replica_lag_time_max_ms == 30_000
    assert settings.replica_fetch_wait_max_ms == 500
    assert settings.flush_rule is FlushRule.PAGE_CACHE
    assert settings.read_rule is ReadRule.LEADER_ONLY


def test_a_guard_is_taken_out_by_its_name() -> None:
    guards = Guards().without("fence-fetch", "maximal-isr")
    assert guards.removed() == ("fence-fetch", "maximal-isr")
    assert not guards.fence_fetch
    assert guards.fence_truncation


def test_taking_out_one_more_keeps_the_others_out() -> None:
    guards = Guards().without("fence-fetch").without("maximal-isr")
    assert guards.removed() == ("fence-fetch", "maximal-isr")


def test_an_unknown_guard_is_an_error() -> None:
    with pytest.raises(KeyError, match="no-such-guard"):
        Guards().without("no-such-guard")


@pytest.mark.parametrize("name", guard_names())
def test_every_guard_says_what_it_demands_in_one_sentence(name: str) -> None:
    explanation = guard_explanation(name)
    assert explanation[0].isupper()
    assert explanation.endswith(".")


@pytest.mark.parametrize("name", guard_names())
def test_every_guard_can_be_taken_out_alone(name: str) -> None:
    assert Guards().without(name).removed() == (name,)
