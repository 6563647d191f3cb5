from __future__ import annotations

import io
import os
import pty
import select
import signal
import sys

import pytest

from holdfast.cli.lab.keys import decode
from holdfast.cli.lab.stepper import press, print_all
from holdfast.lab.render.frames import fold
from tests.unit.lab.traces import (
    TraceBuilder,
    divergence_unclean,
    loss_restart_truncation,
    one_of_every_kind,
)


def printed(trace: TraceBuilder) -> str:
    file = io.StringIO()
    print_all(fold(trace.events), file)
    return file.getvalue()


def test_a_pipe_gets_every_frame_without_colour_codes() -> None:
    frames = fold(divergence_unclean())
    file = io.StringIO()
    print_all(frames, file)
    text = file.getvalue()
    assert "\x1b" not in text
    assert f"{len(frames)}/{len(frames)}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_lane_shows_cells_epochs_and_marks() -> None:
    file = io.StringIO()
    print_all(fold(divergence_unclean())[-1:], file)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("▶ A"))
    assert lines[start : start + 5] == [
        "▶ A     follower e2   ○ not in sync",
        "         │ m0 │✗m1✗",
        "         │ e1 │gone",
        "         ━━━━━ disk 1",
        "          HW 1┘ LEO 1",
    ]
    assert any("✖ m1 LOST" in line for line in lines)


def test_what_is_not_committed_stands_between_dotted_bars() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.append(1, 0, 1, "m0", "m1", as_leader=True)
    trace.commit(1, 1, 0)
    assert "│ m0 ┊ m1 ┊" in printed(trace)
    assert "HW 1┘    └LEO 2" in printed(trace)


def test_a_long_log_shows_its_end() -> None:
    trace = TraceBuilder()
    trace.begin()
    trace.append(1, 0, 1, *(f"m{number}" for number in range(100)), as_leader=True)
    text = printed(trace)
    assert "m99" in text
    assert "┊ m1 ┊" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_every_kind_can_be_printed() -> None:
    print_all(fold(one_of_every_kind()), io.StringIO())
    print_all([], io.StringIO())


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b[C\x1b[D", ["right", "left"]),
        (b"\x1bOC", ["right"]),
        (b"\x1b[5~\x1b[6~", ["page-up", "page-down"]),
        (b"\x1b[H\x1b[4~", ["home", "end"]),
        (b" nq", [" ", "n", "q"]),
        (b"g12\r", ["g", "1", "2", "enter"]),
        (b"\x1b[1;5Cq", ["q"]),
        (b"\x1b", []),
        (b"\xff", ["ÿ"]),
    ],
)
def test_keys_are_decoded(data: bytes, keys: list[str]) -> None:
    assert decode(data) == keys


def test_keys_move_through_the_scenario() -> None:
    frames = fold(loss_restart_truncation())
    last = len(frames) - 1

    def after(place: int, *keys: str) -> int:
        typed: str | None = None
        for key in keys:
            place, typed = press(frames, place, typed, key)
        return place

    assert after(0, "right", " ", "n", "j") == 4
    assert after(4, "left", "p", "k") == 1
    assert after(0, "left") == 0
    assert after(0, "end") == after(last, "right") == last
    assert after(last, "home") == 0
    assert frames[after(0, "page-down")].step == 1
    assert frames[after(0, "page-down", "page-down")].line == "A->B nothing new high_watermark=3"
    assert frames[after(last, "page-up")].step == 5
    assert frames[after(0, "g", "4", "enter")].line == "B truncates to 2, drops [2,3) m2"
    assert after(3, "g", "9", "backspace", "enter") == 3
    assert after(3, "g", "9", "9", "enter") == 3
    assert after(3, "x") == 3


def in_a_terminal(*keys: bytes) -> tuple[int, str]:
    """`lab step` in a terminal of its own: the exit code, and all that it drew."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS="100", LINES="40")
        os.execv(sys.executable, [sys.executable, "-m", "holdfast", "lab", "step", SCENARIO])
    drawn = b""
    left = list(keys)
    try:
        while True:
            if not select.select([terminal], [], [], PATIENCE_S)[0]:
                os.kill(child, signal.SIGKILL)
                raise AssertionError("it waits for another key")
            try:
                piece = os.read(terminal, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            drawn += piece
            if left and b"quit" in drawn:  # the footer is out: it listens
                os.write(terminal, left.pop(0))
                drawn = drawn.replace(b"quit", b"QUIT")
        _, status = os.waitpid(child, 0)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(status), drawn.decode()


SCENARIO = "loss-restart-truncation"
PATIENCE_S = 120.0


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_one_key_leaves_all_variants(key: bytes) -> None:
    code, drawn = in_a_terminal(key)
    assert code == 0
    assert f"{SCENARIO}: " in drawn
    assert "variant before (1 of 3)" in drawn
    assert "(2 of 3)" not in drawn


def test_v_shows_the_next_variant() -> None:
    code, drawn = in_a_terminal(b"v", b"q")
    assert code == 0
    assert "(2 of 3)" in drawn
