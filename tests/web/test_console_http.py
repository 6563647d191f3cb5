"""Who may ask the console what, over plain HTTP; and the stream of updates."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from tests.support.waiting import wait_until
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

KILL = {"call": "kill", "fields": {"brokers": [3]}}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)


def ask(
    served: Served, method: str, path: str, body: object = None, **headers: str | None
) -> Answer:
    """One request with the headers that the page would send; None leaves one out."""
    port = served.console.port
    sent: dict[str, str | None] = {"Host": f"127.0.0.1:{port}"}
    if method == "POST":
        sent |= {
            "Origin": f"http://127.0.0.1:{port}",
            "X-Holdfast-Token": served.console.token,
            "Content-Type": "application/json",
        }
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(data or b"")))
        connection.endheaders(data)
        response = connection.getresponse()
        text = response.read().decode()
        return Answer(response.status, dict(response.headers), text)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Holdfast_Token": None}, 403),
        ({"X_Holdfast_Token": "wrong"}, 403),
        ({"X_Holdfast_Token": ""}, 403),
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": None}, 415),
        ({"Host": "evil.example"}, 421),
        ({"Host": None}, 400),
    ],
)
def test_a_fault_needs_token_origin_host_and_json(
    served: Served, headers: dict[str, str | None], status: int
) -> None:
    for path in ("/faults", "/forecast", "/advice"):
        assert ask(served, "POST", path, KILL, **headers).status == status
    assert served.cluster.is_running(3)


def test_reading_needs_the_host_but_no_token(served: Served) -> None:
    for path in ("/", "/facts", "/theme.css", "/assets/main.js", "/reports"):
        assert ask(served, "GET", path).status == 200, path
        assert ask(served, "GET", path, Host="evil.example").status == 421, path
        assert ask(served, "GET", path, Host=f"evil.example:{served.console.port}").status == 421
        assert ask(served, "GET", path, Origin="http://evil.example").status == 403, path
    host = f"localhost:{served.console.port}"
    assert ask(served, "GET", "/", Host=host).status == 200


def test_a_fault_cannot_be_asked_for_by_get_or_by_a_form(served: Served) -> None:
    assert ask(served, "GET", "/faults?call=kill&brokers=3").status == 405
    form = "application/x-www-form-urlencoded"
    assert ask(served, "POST", "/faults", KILL, Content_Type=form).status == 415
    assert served.cluster.is_running(3)


def test_the_token_is_in_no_answer(served: Served) -> None:
    for path in ("/", "/facts", "/assets/state.js", "/reports"):
        answer = ask(served, "GET", path)
        assert served.console.token not in answer.text + str(answer.headers)


def test_calls_that_are_no_faults_are_refused(served: Served) -> None:
    calls: tuple[object, ...] = ("delete-topic", "produce", "info", "", None, {})
    for call in calls:
        wrong = {"call": call, "fields": {"topic": "flights"}}
        assert ask(served, "POST", "/faults", wrong).status == 409
    bodies: tuple[object, ...] = (
        [],
        "kill",
        {"call": "kill"},
        {"call": "kill", "fields": {"brokers": ["1"]}},
    )
    for body in bodies:
        assert ask(served, "POST", "/faults", body).status == 409
    assert list(served.cluster.running()) == [1, 2, 3]


def test_the_body_of_a_request_is_bounded(served: Served) -> None:
    answer = ask(served, "POST", "/faults", {"call": "kill", "fields": {"brokers": [1] * 100_000}})
    assert (answer.status, answer.body["error"]) == (409, "the request is too long")


def test_every_answer_forbids_foreign_scripts_and_frames(served: Served) -> None:
    for path in ("/", "/facts", "/stepper?partition=flights-0", "/reports/monday.html", "/none"):
        policy = ask(served, "GET", path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy or "sandbox" in policy
    for page in ("/stepper?partition=flights-0", "/reports/monday.html"):
        policy = ask(served, "GET", page).headers["content-security-policy"]
        assert "sandbox allow-scripts" in policy, "a page of its own cannot reach the token"


def test_reports_are_listed_and_nothing_else_is_served(served: Served) -> None:
    listed = {one["name"]: one["look"] for one in ask(served, "GET", "/reports").body}
    assert listed == {"monday.html": "good", "tuesday.html": "bad"}
    assert "A report." in ask(served, "GET", "/reports/monday.html").text
    for name in ("../secret.html", "..%2Fsecret.html", "none.html", "%2Fetc%2Fpasswd"):
        assert ask(served, "GET", f"/reports/{name}").status == 404
    for name in ("../theme.py", "..%2F..%2Ftheme.py", "console.py"):
        assert ask(served, "GET", f"/assets/{name}").status == 404


class Stream:
    """The events of one open page."""

    def __init__(self, served: Served, partition: str = "") -> None:
        port = served.console.port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._connection.request("GET", f"/events?partition={partition}")
        self._response = self._connection.getresponse()
        assert self._response.getheader("content-type") == "text/event-stream; charset=utf-8"

    def next(self, kind: str) -> Any:
        """The data of the next event of a kind."""
        name = ""
        while line := self._response.readline().decode().rstrip("\n"):
            pass
        while True:
            line = self._response.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == kind:
                return json.loads(line.removeprefix("data: "))

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def is_known(served: Served) -> bool:
    seen = served.console.watcher.seen
    ends = [seen.partitions[name].end for name in seen.partitions if name.startswith("flights")]
    return len(ends) == 2 and None not in ends and "flights" in seen.topics


@pytest.fixture
def stream(served: Served) -> Iterator[Stream]:
    wait_until(lambda: is_known(served), "both partitions are observed")
    one = Stream(served, "flights-0")
    yield one
    one.close()


def test_a_full_snapshot_comes_first_and_then_only_what_changed(
    served: Served, stream: Stream
) -> None:
    first = stream.next("update")
    assert first["full"]
    assert first["items"]["partition/flights-0"][:4][:3] == ["flights", 0, "healthy"]
    assert {"broker/1", "broker/2", "broker/3", "topic/flights"} <= set(first["items"])
    before = first["items"]["partition/flights-0"]
    served.cluster.produce("flights", ["four"])
    while True:  # The stream's own timeout ends it.
        update = stream.next("update")
        assert not update["full"]
        assert "partition/flights-1" not in update["items"]
        changed = update["items"].get("partition/flights-0")
        if changed and changed[9] == before[9] + 1:
            break


def test_the_lanes_of_the_open_partition_are_the_steppers_drawing(stream: Stream) -> None:
    lanes = stream.next("lanes")
    assert lanes["partition"] == "flights-0"
    wide = "".join(lanes["wide"]["parts"])
    assert wide.count('class="card') >= 4, "the store and three replicas"
    assert "HW " in wide
    assert "LEO " in wide
    assert "LEADER e0" in wide
    assert [row["broker"] for row in lanes["table"]] == [1, 2, 3]
    assert lanes["narrow"]["width"] < 400 < lanes["wide"]["width"]


def test_questions_about_what_is_not_there_are_refused(served: Served) -> None:
    for path in (
        "/why?why=offline&partition=none-0",
        "/why?why=out&partition=flights-0&broker=x",
        "/why?why=lost&partition=flights-0&offset=-1",
        "/why?why=nothing",
        "/stepper?partition=none-0",
        "/stepper?partition=flights-0&minutes=x",
        "/scenario?partition=none-0",
    ):
        answer = ask(served, "GET", path)
        assert answer.status == 409, path
        assert answer.body["error"]
