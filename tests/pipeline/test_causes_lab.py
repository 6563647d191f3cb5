"""The cause of a loss, checked against the lab: one trace format, so one analysis for both.

The lab finds remedies by running a scenario again under other settings. A remedy that the audit
names without running anything must be among them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab import Run, explain, ids, load, remedies, run_scenario
from holdfast.lab.render.narrate import names_of
from holdfast.pipeline.audit.causes.case import Asked
from holdfast.pipeline.audit.causes.from_traces import Reason, reason_of
from holdfast.pipeline.audit.causes.history import History, Span
from holdfast.pipeline.audit.causes.remedies import remedy_of
from holdfast.pipeline.audit.causes.traces import Seen

BY_OTHER_RULES = {
    ("divergence-power-loss", "before"): "a leader truncates to its high watermark",
    ("stale-broker-epoch", "before"): "a guard is out that no setting replaces",
    ("flush-before-claim", "before"): "flush.messages was set, and acknowledgements did not wait",
    ("flush-before-claim", "every-record"): "the same with flush.messages=1",
}
"""Scenarios whose loss is that of rules which brokers do not have any more."""
KINDS = {
    ("loss-acks-1", "acks-1"): "leader-alone",
    ("acks1-planned-move", "acks-1"): "leader-alone",
    ("election-unclean", "before"): "unclean-election",
    ("divergence-unclean", "after"): "unclean-election",
    ("unclean-exact-loss", "acks-1"): "unclean-election",
    ("loss-page-cache", "page-cache"): "lost-flush",
    ("divergence-power-loss", "after"): "lost-flush",
    ("whole-cluster-power-loss", "beyond"): "lost-flush",
    ("loss-restart-truncation", "before"): "truncation",
    ("stale-broker-epoch", "before"): "lost-disk",
}


def reasons(run: Run, label: str) -> list[Reason]:
    """Why the record of this label is gone; one for every offset it was acknowledged at."""
    history = History()
    for line, event in enumerate(run.events, 1):
        history.take(Seen(event, Path("scenario.trace"), line))
    found = []
    for account in explain(run.events, label).accounts:
        if account.outcome == "lost" and account.offset is not None:
            acked_ms = None if account.acknowledged is None else account.acknowledged.t
            span = Span(account.offset, account.offset + 1)
            asked = Asked(span=span, count=1, acked_ms=acked_ms)
            reason = reason_of(history, asked, names_of(run.events))
            assert reason is not None, f"{label} at {account.offset}: no reason"
            found.append(reason)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ids())
def test_a_remedy_is_one_that_the_lab_finds_too(name: str) -> None:
    scenario = load(name)
    for variant in scenario.variants:
        run = run_scenario(scenario, variant)
        for label in run.verdict.lost[:1]:
            played = remedies(scenario, variant, label)
            for reason in reasons(run, label):
                remedy = remedy_of(reason)
                if remedy is None or (name, variant.name) in BY_OTHER_RULES:
                    continue
                setting = f"{remedy.setting}={remedy.value}"
                setting = setting.replace("flush.messages=1", "flush=every-append")
                assert setting in played, (variant.name, label, reason.sentence)


@pytest.mark.parametrize(("name", "variant"), KINDS)
def test_the_kind_of_cause_is_that_of_the_scenario(name: str, variant: str) -> None:
    scenario = load(name)
    run = run_scenario(scenario, scenario.variant(variant))
    assert run.verdict.lost
    kinds = {reason.kind for label in run.verdict.lost for reason in reasons(run, label)}
    assert kinds == {KINDS[name, variant]}
