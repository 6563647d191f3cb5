"""Scenario files that parse and cannot run: the error has a line number and a hint."""

from __future__ import annotations

import pytest

from holdfast.lab.scenarios.commands import HANDLERS
from holdfast.lab.scenarios.run import Run, run_scenario
from holdfast.lab.scenarios.scenario import ScenarioError, parse

CLUSTER = "cluster brokers=(A,B)"
PRODUCE = "produce A\n  m0"


def play(*commands: str, variant: str = "", **overrides: str) -> Run:
    """Run a scenario with one step per command; the verdict is added."""
    text = "\n\n".join(("# Claim.", variant or "variant only", *commands, "trace off", "verdict"))
    scenario = parse(text, "some.scenario")
    return run_scenario(scenario, scenario.variants[0], overrides)


def error_of(*commands: str, variant: str = "") -> tuple[str, str]:
    with pytest.raises(ScenarioError) as caught:
        play(*commands, variant=variant)
    return str(caught.value).removeprefix("some.scenario:"), caught.value.hint


@pytest.mark.parametrize(
    ("command", "said", "hint"),
    [
        ("setle", "unknown command 'setle'", "did you mean 'settle'?"),
        ("----before", "unknown command '----before'", "known: "),
        ("¿qué?", "unknown command '¿qué?'", "known: "),
        ("deliver A->B", "nothing is on its way for A->B", "usage: deliver"),
        ("drop B only=Nonsense", "nothing is on its way for B", "usage: drop"),
        ("deliver", "deliver what?", "usage: deliver"),
        ("deliver A->D", "no node is called 'D'", "known: A, B"),
        ("deliver controller-9", "no node is called 'controller-9'", "did you mean 'controller-1'"),
        ("deliver A->", "no node is called ''", "known: A, B"),
        ("settle D", "no node is called 'D'", "known: A, B"),
        ("settle fast=yes", "settle has no option 'fast'", "usage: settle"),
        ("settle\n  m0", "settle takes no input", "only 'produce' does"),
        ("wait", "wait what?", "usage: wait MS"),
        ("wait soon", "the time must be a whole number", "usage: wait MS"),
        ("wait -5", "the time must be a whole number", "usage: wait MS"),
        ("wait ²", "the time must be a whole number", "usage: wait MS"),
        ("run 600001", "the time must be a whole number up to 600000", "usage: run MS"),
        ("produce A", "no records", "indented below"),
        ("produce A acks=2\n  m0", "acks cannot be '2'", "acks=0 | 1 | all"),
        ("produce A ack=1\n  m0", "produce has no option 'ack'", "did you mean 'acks'?"),
        ("produce A to=B\n  m0", "'to' does not go with", "usage: produce"),
        ("produce p to=D\n  m0", "no broker is called 'D'", "known: A, B"),
        ("produce A together=maybe\n  m0", "together=maybe?", "together=yes"),
        ("produce A B\n  m0", "expected 1 word(s)", "usage: produce"),
        ("produce A\n  m9..m1", "'m9..m1' is no range", "m0..m9"),
        ("produce A\n  m0..n5", "'m0..n5' is no range", "m0..m9"),
        ("produce A\n  m0..m99999999", "a place must be a whole number up to", "usage: produce"),
        ("producer A", "no new node can be called 'A'", "letters"),
        ("producer store", "no new node can be called 'store'", "letters"),
        ("consumer controller-1", "no new node can be called 'controller-1'", "letters"),
        ("consumer a->b", "no new node can be called 'a->b'", "letters"),
        ("consumer c commit=never", "commit cannot be 'never'", "auto | manual"),
        ("producer p retries=many", "retries cannot be 'many'", "a number"),
        ("producer p retries=-1", "retries cannot be '-1'", "a number"),
        ("crash D", "no broker is called 'D'", "known: A, B"),
        ("crash", "crash what?", "usage: crash"),
        ("crash A keep=nothing", "keep=nothing?", "keep=written"),
        ("crash A wire=cut", "wire=cut?", "wire=lost"),
        ("crash A torn=some", "torn must be a whole number", "usage: crash"),
        ("crash A toorn=1", "crash has no option 'toorn'", "did you mean 'torn'?"),
        ("restart A", "A is running already", "usage: restart"),
        ("power-loss A", "A is running", "crash A keep=flushed"),
        ("lose-disk A", "A is running", "crash A"),
        ("resume A", "A is not paused", "pause A"),
        ("elect D", "no broker is called 'D'", "known: A, B"),
        ("elect", "elect what?", "usage: elect"),
        ("reassign", "reassign what?", "usage: reassign"),
        ("expire", "expire what?", "usage: expire"),
        ("hold", "hold what?", "usage: hold"),
        ("hold D", "no node is called 'D'", "known: A, B"),
        ("release D", "no node is called 'D'", "known: A, B"),
        ("hold expansions D", "no broker is called 'D'", "known: A, B"),
        ("cut D", "no node is called 'D'", "known: A, B"),
        ("cut A D", "no node is called 'D'", "known: A, B"),
        ("cut A->B B", "expected 1 word(s)", "usage: cut"),
        ("heal A", "expected 0 word(s)", "usage: heal"),
        ("disk A burns", "a disk cannot 'burns'", "fails, full"),
        ("throttle A fast", "the limit must be a whole number", "usage: throttle"),
        ("trace of", "cannot trace 'of'", "on, off, +KIND or -KIND"),
        ("trace +append", "cannot trace '+append'", "did you mean 'appended'?"),
        ("state D", "no broker is called 'D'", "known: A, B"),
        ("followers B", "B does not lead", "usage: followers"),
        ("seek c x", "the offset must be a whole number", "usage: seek"),
        ("work c x", "the count must be a whole number", "usage: work"),
        ("cluster brokers=(A)", "there is a cluster already", "a scenario has one cluster"),
    ],
)
def test_a_command_that_cannot_be_carried_out(command: str, said: str, hint: str) -> None:
    message, given = error_of(CLUSTER, command)
    assert message.startswith(f"7: {said}")
    assert hint in given


def test_a_number_too_long_for_python_is_refused_too() -> None:
    assert error_of(CLUSTER, f"wait {'9' * 5000}")[0].startswith("7: the time must be")
    line = f"cluster brokers=(A) min_insync_replicas={'9' * 5000}"
    assert error_of(line)[0].startswith("5: min_insync_replicas cannot be")


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ("cluster", "brokers=(A,B,…) must name each broker once", "usage: cluster"),
        ("cluster A B", "expected 0 word(s)", "usage: cluster"),
        ("cluster brokers=(A,A)", "brokers=(A,B,…) must name each broker once", "usage"),
        ("cluster brokers=(A,store)", "no new node can be called 'store'", "letters"),
        ("cluster brokers=(A->B)", "no new node can be called 'A->B'", "letters"),
        ("cluster brokers=(A,B) leader=C", "'C' is not one of the brokers", "usage"),
        ("cluster brokers=(A,B) isr=(A,C)", "'C' is not one of the brokers", "usage"),
        ("cluster brokers=(A,B) isr=(B)", "the leader 'A' must be in the ISR", "usage"),
        ("cluster brokers=(A,B) broker=1", "cluster has no option 'broker'", "'brokers'?"),
        ("cluster brokers=(A,B) truncation=hw", "truncation cannot be 'hw'", "leader-epoch"),
        ("cluster brokers=(A,B) unclean=maybe", "unclean cannot be 'maybe'", "on | off"),
        ("cluster brokers=(A) min_insync_replicas=two", "min_insync_replicas cannot be", "number"),
        ("cluster brokers=(A) replica_fetch_wait_max_ms=0", "replica_fetch_wait_max_ms", "ms=mill"),
        ("cluster brokers=(A) without=(fence-fech)", "unknown guard 'fence-fech'", "'fence-fetch'"),
        ("cluster brokers=(A) without=qqqq", "unknown guard 'qqqq'", "known: registration"),
        ("settle", "there is no cluster yet", "begin with 'cluster"),
        ("verdict", "there is no cluster yet", "begin with 'cluster"),
    ],
)
def test_a_cluster_that_cannot_be_made(line: str, said: str, hint: str) -> None:
    message, given = error_of(line)
    assert message.startswith(f"5: {said}")
    assert hint in given


@pytest.mark.parametrize(
    ("variant", "said", "hint"),
    [
        ("variant v truncaton=high-watermark", "unknown setting 'truncaton'", "'truncation'?"),
        ("variant v truncation=none", "truncation cannot be 'none'", "high-watermark | leader"),
        ("variant v without=(maximal-iss)", "unknown guard 'maximal-iss'", "'maximal-isr'?"),
        ("variant v retries=x", "retries cannot be 'x'", "a number"),
        ("variant v zzzz=1", "unknown setting 'zzzz'", "known: truncation"),
    ],
)
def test_a_variant_is_refused_at_its_own_line(variant: str, said: str, hint: str) -> None:
    message, given = error_of(CLUSTER, variant=variant)
    assert message.startswith(f"3: {said}")
    assert hint in given


@pytest.mark.parametrize(
    ("before", "command", "said"),
    [
        (["crash A"], "crash A", "A is not running"),
        (["crash A"], "stop A", "A is not running"),
        (["crash A"], "shutdown A", "A is not running"),
        (["crash A"], "pause A", "A is not running"),
        (["crash A"], "resume A", "A is not running"),
        (["crash A"], "rejoin A", "A is not running"),
        (["crash A"], "offline A", "A is not running"),
        (["disk A fails"], "stop A", "A's disk fails: it cannot stop cleanly"),
        (["crash controller"], "elect B", "no controller is running"),
        (["crash controller"], "reassign B", "no controller is running"),
        (["producer c"], "consume c", "'c' is not a consumer"),
        (["consumer c"], "retry c", "'c' is not a producer"),
        (["producer p idempotence=on"], "resend p", "p is idempotent"),
    ],
)
def test_a_command_at_the_wrong_time(before: list[str], command: str, said: str) -> None:
    message, hint = error_of(CLUSTER, *before, command)
    assert message.startswith(f"{7 + 2 * len(before)}: {said}")
    assert hint


def test_a_scenario_must_end_with_a_verdict() -> None:
    for text, line in (("# C.\n\n" + CLUSTER, 3), ("# C.\n\n# Only words.\n", 3), ("# C.\n", 1)):
        scenario = parse(text, "some.scenario")
        with pytest.raises(
            ScenarioError, match=f"scenario:{line}: the scenario has no verdict"
        ) as e:
            run_scenario(scenario, scenario.variants[0])
        assert e.value.hint == "end with 'verdict'"


def test_every_command_says_how_it_is_used() -> None:
    for name, handler in HANDLERS.items():
        assert handler.usage.split()[0] == name
        assert handler.run.__doc__, name


def test_unexpected_output_is_reported_with_its_line() -> None:
    text = f"# C.\n\n{CLUSTER}\n\nisr\n----\nstore: nobody leads\n\nverdict\n"
    scenario = parse(text, "s")
    run = run_scenario(scenario, scenario.variants[0])
    first, second = run.mismatches
    assert not run.as_expected
    assert (first.line, first.expected) == (6, ("store: nobody leads",))
    assert first.actual == ("store: leader=A epoch=0 isr=(A,B)",)
    assert (second.line, second.expected) == (9, ())
    assert second.actual[0] == "outcome: kept"


def test_under_changed_rules_nothing_is_expected() -> None:
    run = play(CLUSTER, PRODUCE, "settle", acks="0")
    assert run.as_expected
    assert [event.numbers["acks"] for event in run.events if event.kind == "sent"] == [0]


def test_the_command_line_overrides_the_variant_and_the_variant_the_scenario() -> None:
    scenario = f"{CLUSTER} min_insync_replicas=1 truncation=leader-epoch flush=page-cache"
    variant = "variant v truncation=high-watermark min.insync.replicas=2"
    begins = play(scenario, variant=variant, min_insync_replicas="3").events[0].numbers
    assert begins["rules"]["truncation"] == "high-watermark"
    assert begins["settings"]["min_insync_replicas"] == 3
    assert begins["settings"]["flush_rule"] == "page-cache"


def test_the_default_minimum_is_two_of_three() -> None:
    found = [
        play(f"cluster brokers=({names})").events[0].numbers["settings"]["min_insync_replicas"]
        for names in ("A", "A,B", "A,B,C")
    ]
    assert found == [1, 1, 2]


def test_held_writes_and_held_messages_are_let_go() -> None:
    run = play(CLUSTER, "hold store", "elect B", "hold store", "release store", "settle")
    assert [event.numbers["leader"] for event in run.events if event.kind == "elected"] == [2]
    run = play(CLUSTER, "hold store", "release store", "elect B", "settle")
    assert [event.numbers["leader"] for event in run.events if event.kind == "elected"] == [2]


def test_held_settings_wait_for_the_state_and_their_answer_for_a_command() -> None:
    alone = ("stop B", "expire B", "alter min_insync_replicas=1")
    assert stored_after(CLUSTER, "hold settings", *alone) == [1]
    assert stored_after(CLUSTER, "hold store", *alone) == []
    assert stored_after(CLUSTER, "hold store", *alone, "release store") == [1]


def stored_after(*commands: str) -> list[int]:
    events = play(*commands, min_insync_replicas="2").events
    return [one.numbers["min_insync_replicas"] for one in events if one.kind == "settings-stored"]


@pytest.mark.parametrize("minimum", ["0", "2", "3"])
def test_the_lab_only_lowers_the_minimum(minimum: str) -> None:
    with pytest.raises(ScenarioError, match="from 1 to 1"):
        play(CLUSTER, f"alter min_insync_replicas={minimum}", min_insync_replicas="2")


def test_one_change_of_settings_at_a_time() -> None:
    change = "alter min_insync_replicas=1"
    with pytest.raises(ScenarioError, match="in progress"):
        play(CLUSTER, "hold settings", change, change, min_insync_replicas="2")
