"""What a broker says to people."""

import io

from holdfast.broker.log_lines import LogLines


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


def test_a_bug_is_told_with_its_place() -> None:
    stream = io.StringIO()
    try:
        raise KeyError("oops")
    except KeyError as error:
        LogLines(1, stream).bug("request failed", error, api="Fetch")
    assert "KeyError('oops')" in stream.getvalue()
    assert "test_log_lines.py" in stream.getvalue()
