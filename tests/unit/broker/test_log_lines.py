"""The log lines of a broker."""

import io

from holdfast.broker.log_lines import MOST_ALIKE, REMEMBERED_LINES, REPEAT_S, LogLines


def test_a_line_names_level_broker_event_and_fields() -> None:
    stream = io.StringIO()
    LogLines(3, stream).warning("log failed", partition="t-0", error='no "space" left')
    moment, level, rest = stream.getvalue().split(" ", 2)
    assert moment.endswith("+00:00")
    assert level == "warning"
    assert rest == 'broker=3 event="log failed" partition=t-0 error="no \\"space\\" left"\n'


def test_a_value_cannot_forge_a_line() -> None:
    stream = io.StringIO()
    LogLines(1, stream).info("request refused", client="evil\nerror broker=1 event=stopped")
    assert stream.getvalue().count("\n") == 1


def test_a_bug_is_logged_with_its_place() -> None:
    stream = io.StringIO()
    try:
        raise KeyError("oops")
    except KeyError as error:
        LogLines(1, stream).bug("request failed", error, api="Fetch")
    assert "KeyError('oops')" in stream.getvalue()
    assert "test_log_lines.py" in stream.getvalue()


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def lines_of(stream: io.StringIO) -> list[str]:
    return [line.split("event=", 1)[1] for line in stream.getvalue().splitlines()]


def test_a_warning_that_repeats_is_written_now_and_then_with_a_count() -> None:
    stream, clock = io.StringIO(), Clock()
    log = LogLines(1, stream, clock)
    for _ in range(480):  # A minute of retries.
        log.warning("cannot register", error="disk is full")
        clock.now_s += 0.125
    written = lines_of(stream)
    assert len(written) == 60 / REPEAT_S
    assert written[0] == '"cannot register" error="disk is full"'
    assert written[1] == '"cannot register" error="disk is full" repeated=79'


def test_another_warning_and_a_change_of_state_are_always_written() -> None:
    stream = io.StringIO()
    log = LogLines(1, stream, Clock())
    for state in ("lost", "connected", "lost"):
        log.info("session", state=state)
    for partition in ("t-0", "t-1"):
        log.error("log failed", partition=partition)
    assert len(lines_of(stream)) == 5


def test_one_client_is_one_line_whatever_it_sends() -> None:
    stream = io.StringIO()
    log = LogLines(1, stream, Clock())
    for host in ("10.0.0.1", "10.0.0.2"):
        for number in range(100):
            log.client_warning("request refused", {"client": host}, reason=f"API {number}")
    assert len(lines_of(stream)) == 2


def test_what_is_written_and_remembered_of_made_up_names_is_bounded() -> None:
    stream, clock = io.StringIO(), Clock()
    log = LogLines(1, stream, clock)
    for number in range(3 * REMEMBERED_LINES):
        log.warning("topic not created", topic=number)
    assert len(lines_of(stream)) == MOST_ALIKE
    assert len(log._recent) == REMEMBERED_LINES
    clock.now_s += REPEAT_S
    log.warning("topic not created", topic="another")
    left_out = 3 * REMEMBERED_LINES - MOST_ALIKE
    assert lines_of(stream)[-1] == f'"topic not created" topic=another repeated={left_out}'
