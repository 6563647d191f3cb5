"""`holdfast lab spec`: what it prints, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.unit.cli.lab_runner import lab, lab_json

SMALL = ("--replicas", 2, "--max-epoch", 1)
KEYS = {
    "variant", "replicas", "log_size", "records", "max_epoch", "symmetry", "distinct", "generated",
    "depth", "invariant", "steps", "seconds",
}  # fmt: skip
LAST_STEP = """\
  8  b2 follows b1 in epoch 1, and truncates its log to 0, dropping m0/1.
        controller  epoch 1   b1 leads    ISR (b1,b2)
        b1          epoch 1   leads       ISR (b1,b2)     m0/1 |
     *  b2          epoch 1   follows b1  ISR (b1,b2)     |
        b3          no epoch  no leader                   |

b1 presumes leadership and has committed m0/1 at offset 0. b2 is in the controller's ISR and \
holds nothing there.

violated after 8 steps; no shorter way exists. Visited 5,709 distinct states up to the names of \
replicas (16,741 generated, depth 9) in """


def test_what_holds_ends_with_zero() -> None:
    done = lab("spec", "kip320", *SMALL)
    assert done.exit_code == 0
    assert "holds: all 479 distinct states up to the names of replicas (912 gen" in done.stdout
    assert "strong-isr: all that a presumed leader has committed" in done.stdout
    facts = lab_json("spec", "kip320", *SMALL, "--no-symmetry", "--invariant", "weak-isr")
    assert facts.keys() >= KEYS
    assert (facts["distinct"], facts["generated"], facts["depth"]) == (957, 1819, 15)
    assert (facts["verdict"], facts["checked"]) == ("holds", "weak-isr")
    assert (facts["invariant"], facts["steps"], facts["trace"]) == (None, None, None)
    assert (facts["replicas"], facts["log_size"], facts["records"]) == (2, 2, 2)
    assert (facts["max_epoch"], facts["symmetry"]) == (1, False)


def test_a_violation_is_a_numbered_trace_and_exits_with_one() -> None:
    done = lab("spec", "hw")
    assert done.exit_code == 1
    assert LAST_STEP in done.stdout
    facts = lab_json("spec", "hw", code=1)
    assert (facts["verdict"], facts["invariant"], facts["steps"]) == ("violated", "strong-isr", 8)
    assert len(facts["trace"]) == 8
    last = facts["trace"][-1]
    assert last["agreed"] == {"leader": "b1", "isr": ["b1", "b2"]}
    assert (last["replicas"]["b1"]["log"], last["replicas"]["b2"]["log"]) == (["m0/1"], [])


def test_without_an_invariant_everything_is_visited() -> None:
    facts = lab_json("spec", "hw", *SMALL, "--invariant", "none", "--no-symmetry")
    assert (facts["distinct"], facts["checked"], facts["invariant"]) == (1251, None, None)
    done = lab("spec", "hw", *SMALL, "--invariant", "none")
    assert "explored: all 626 distinct states" in done.stdout


def test_limit_ends_with_two() -> None:
    done = lab("spec", "kip320", "--limit", "1000", "--limit", "1h")
    assert done.exit_code == 2
    assert "limit: 1,000 states. Visited 1," in done.stdout
    assert done.stdout.endswith("strong-isr holds in them.\n")
    facts = lab_json("spec", "kip320", "--limit", "1MiB", code=2)
    assert (facts["verdict"], facts["distinct"]) == ("limit", 1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("kip500",), "'kip500' is not one of 'hw', 'kip101'"),
        (("hw", "--limit", "soon"), "'soon' is no limit (try --limit 1000000, --limit 60s"),
        (("hw", "--replicas", 0), "replicas must be between 1 and 16"),
        (("hw", "--replicas", 9), "more than 8 replicas have too many permutations"),
        (("hw", "--records", "two"), "'two' is not a valid integer"),
        (("hw", "--invariant", "strong"), "'strong' is not one of"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[object, ...], complaint: str) -> None:
    done = lab("spec", *arguments)
    assert done.exit_code == 64
    assert complaint in done.stderr
    assert done.stdout == ""


def test_without_numpy_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['numpy'] = None; from holdfast.cli import main; main()"
    command = [sys.executable, "-c", script, "lab", "spec", "hw"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert done.stderr.startswith("holdfast: this needs numpy")
    assert "holdfast[search]" in done.stderr


@pytest.mark.slow
def test_an_interrupt_reports_what_was_covered() -> None:
    command = [sys.executable, "-m", "holdfast", "lab", "spec", "kip320", "--max-epoch", "5"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert running.stderr is not None
        progress = running.stderr.readline()
        assert " states/s" in progress
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=600)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert stdout == ""
    assert "was visited, no violation among them" in stderr
    assert stderr.splitlines()[-1] == "holdfast: interrupted"


def test_a_fence_that_is_taken_out_is_named_and_missed() -> None:
    done = lab("spec", "kip320", "--without", "fence-isr-expand")
    assert done.exit_code == 1
    assert "\nwithout fence-isr-expand: a follower joins the ISR in the leader's epoch" in (
        done.stdout
    )
    assert "violated after 11 steps; no shorter way exists." in done.stdout
    facts = lab_json("spec", "kip320", "--without", "fence-isr-expand", code=1)
    assert (facts["without"], facts["steps"]) == (["fence-isr-expand"], 11)


def test_only_the_last_variant_has_fences() -> None:
    done = lab("spec", "kip279", "--without", "fence-fetch")
    assert done.exit_code == 64
    assert "kip279 has no fences; kip320 has fence-fetch" in done.stderr
