"""The control socket checks every field, and carries out requests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.faults.control_socket import LONGEST_LINE, ControlSocket
from holdfast.broker.faults.faulty_disk import DiskFault, FaultyDisk
from holdfast.broker.faults.link_faults import Links
from holdfast.broker.log_lines import LogLines
from holdfast.broker.network import unix_sockets


class FakeBroker:
    """Does nothing, and remembers it."""

    def __init__(self, root: Path | None = None) -> None:
        self.links = Links(asyncio.new_event_loop())
        self.disks = [FaultyDisk(root)] if root is not None else []
        self.done: list[str] = []

    def status(self) -> dict[str, Any]:
        return {"id": 1}

    def disconnect_store(self) -> None:
        self.done.append("cut store")

    def reconnect_store(self) -> None:
        self.done.append("heal store")

    async def expire_session(self) -> None:
        self.done.append("expire")

    def flush(self) -> None:
        raise OSError("the disk is gone")

    def flush_trace(self) -> None:
        self.done.append("flush trace")

    def begin_stop(self) -> None:
        self.done.append("stop")

    def close(self) -> None:
        self.links._loop.close()


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    broker = FakeBroker(tmp_path)
    yield broker
    broker.close()


def ask(broker: FakeBroker, request: object) -> dict[str, Any]:
    line = request if isinstance(request, bytes) else json.dumps(request).encode()
    control = ControlSocket(broker, Path("unused"), LogLines(1))
    return asyncio.run(control.answer(line))


def test_links_are_disconnected_delayed_dropped_and_reconnected(broker: FakeBroker) -> None:
    assert ask(broker, {"call": "links", "do": "cut", "to": [2, None]}) == {"answer": {}}
    assert broker.links.is_disconnected(2)
    assert broker.links.is_disconnected(None)
    ask(broker, {"call": "links", "do": "delay", "to": [3], "seconds": 0.5})
    ask(broker, {"call": "links", "do": "drop", "to": [3], "probability": 1})
    response = ask(broker, {"call": "status"})["answer"]
    assert response["links"]["3"] == {"cut": False, "deaf": False, "delay_s": 0.5, "drop": 1.0}
    ask(broker, {"call": "links", "do": "heal"})
    assert broker.links.faults() == {}


def test_disks_fail_and_are_repaired(broker: FakeBroker) -> None:
    ask(broker, {"call": "disk", "do": "full"})
    ask(broker, {"call": "disk", "do": "io-error", "partition": "t-0"})
    assert broker.disks[0].faults == (DiskFault("full"), DiskFault("io-error", "t-0"))
    response = ask(broker, {"call": "status"})["answer"]
    root = broker.disks[0].root
    assert response["disk_faults"][1] == {"kind": "io-error", "below": "t-0", "directory": root}
    ask(broker, {"call": "disk", "do": "mend"})
    assert not broker.disks[0].faults


def test_a_fault_is_aimed_at_one_log_directory(broker: FakeBroker) -> None:
    root = broker.disks[0].root
    ask(broker, {"call": "disk", "do": "full", "directory": root})
    assert broker.disks[0].faults == (DiskFault("full"),)
    for wrong in ("/elsewhere", 7):
        response = ask(broker, {"call": "disk", "do": "full", "directory": wrong})
        assert response == {"error": f"disk: directory is one of log.dirs ({root}), or missing"}


def test_the_store_the_session_and_the_end(broker: FakeBroker) -> None:
    for request in (
        {"call": "store", "do": "cut"},
        {"call": "store", "do": "heal"},
        {"call": "expire-session"},
        {"call": "flush-trace"},
        {"call": "stop"},
    ):
        assert ask(broker, request) == {"answer": {}}
    assert broker.done == ["cut store", "heal store", "expire", "flush trace", "stop"]


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (b"not json", "one line of JSON"),
        (b"[" * 20_000, "one line of JSON"),
        (b"\xff\xfe", "one line of JSON"),
        ([1], "a JSON object"),
        ({}, "call is one of ping"),
        ({"call": ["ping"]}, "call is one of"),
        ({"call": "links", "do": "fly"}, "links: do is one of cut"),
        ({"call": "links", "do": ["cut"], "to": [1]}, "links: do is one of cut"),
        ({"call": "links", "do": "cut"}, "to is a list"),
        ({"call": "links", "do": "cut", "to": [True]}, "to is a list"),
        ({"call": "links", "do": "cut", "to": [-1]}, "to is a list"),
        ({"call": "links", "do": "cut", "to": [1], "both_ways": 1}, "both_ways is true or false"),
        ({"call": "links", "do": "delay", "to": [1], "seconds": "1"}, "seconds is a number"),
        ({"call": "links", "do": "drop", "to": [1], "probability": 2}, "from 0 to 1"),
        (b'{"call":"links","do":"drop","to":[1],"probability":NaN}', "from 0 to 1"),
        ({"call": "disk", "do": "full", "partition": "../.."}, "partition is a name"),
        ({"call": "disk", "do": "full", "partition": 1}, "partition is a name"),
    ],
)
def test_bad_requests_are_refused(broker: FakeBroker, request_: object, complaint: str) -> None:
    assert complaint in ask(broker, request_)["error"]
    assert broker.links.faults() == {}
    assert not broker.disks[0].faults


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_no_bytes_break_it(data: bytes) -> None:
    broker = FakeBroker()
    try:
        assert "error" in ask(broker, data)
    finally:
        broker.close()


def test_an_internal_failure_is_reported(broker: FakeBroker) -> None:
    assert ask(broker, {"call": "flush"}) == {"error": "OSError: the disk is gone"}


async def talk(broker: FakeBroker, path: Path, lines: bytes) -> list[bytes]:
    """Send some lines over the real socket, and read until it hangs up."""
    control = ControlSocket(broker, path, LogLines(1))
    await control.open()

    def exchange() -> bytes:
        with unix_sockets.connect(path, 60) as connection:
            connection.sendall(lines)
            connection.shutdown(1)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received

    try:
        received = await asyncio.to_thread(exchange)
    finally:
        control.close()
    return received.splitlines()


@pytest.mark.parametrize("length", [10, 90])
def test_answers_come_in_order_at_a_path_of_any_length(
    broker: FakeBroker, tmp_path: Path, length: int
) -> None:
    folder = tmp_path / ("x" * length)
    folder.mkdir()
    lines = b'{"call":"ping"}\nnonsense\n{"call":"ping"}\n'
    answers = asyncio.run(talk(broker, folder / "control", lines))
    assert [json.loads(answer) for answer in answers] == [
        {"answer": "pong"},
        {"error": "a request is one line of JSON"},
        {"answer": "pong"},
    ]
    assert not (folder / "control").exists()


def test_an_endless_line_is_refused(broker: FakeBroker, tmp_path: Path) -> None:
    answers = asyncio.run(talk(broker, tmp_path / "control", b"x" * (3 * LONGEST_LINE)))
    assert "at most" in json.loads(answers[0])["error"]


def test_a_socket_left_behind_is_replaced(broker: FakeBroker, tmp_path: Path) -> None:
    unix_sockets.listen(tmp_path / "control").close()
    answers = asyncio.run(talk(broker, tmp_path / "control", b'{"call":"ping"}\n'))
    assert json.loads(answers[0]) == {"answer": "pong"}


def test_only_its_owner_may_connect(tmp_path: Path) -> None:
    with unix_sockets.listen(tmp_path / "control"):
        assert (tmp_path / "control").stat().st_mode & 0o777 == 0o600
