"""The playground in real Chromium: a scenario to its verdict, and cases that go another way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.chromium import PHONE, WAIT_MS, chromium, why_missing

pytestmark = pytest.mark.slow
expect.set_options(timeout=WAIT_MS)
ROOT = Path(__file__).parents[2]
SCENARIO = "loss-restart-truncation"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server with what `make site` writes, below a path as on GitHub Pages."""
    pyodide = Path(sys.prefix) / "pyodide"
    fetched = subprocess.run(
        ["sh", ROOT / "scripts" / "fetch-pyodide", pyodide],
        check=False,
        capture_output=True,
        text=True,
    )
    if fetched.returncode:
        pytest.skip(fetched.stderr.strip())
    root = tmp_path_factory.mktemp("pages")
    command = [sys.executable, "-m", "holdfast.web.playground"]
    subprocess.run([*command, root / "holdfast" / "playground", pyodide], check=True)
    handler = partial(QuietHandler, directory=os.fspath(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/holdfast/playground/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    if reason := why_missing():
        pytest.skip(reason)
    with chromium(tmp_path_factory.mktemp("profile")) as context:
        yield context


@pytest.fixture
def playground(address: str, chrome: BrowserContext) -> Iterator[Page]:
    """A fresh page. It may fetch nothing from elsewhere, and its scripts must not fail."""
    wrong: list[str] = []
    page = chrome.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "data:", "blob:"))
            else wrong.append(f"fetched: {request.url}")
        ),
    )
    page.goto(address)
    yield page
    page.close()
    assert not wrong


def holdfast(*words: str | Path) -> str:
    """What the command line prints."""
    command = [sys.executable, "-m", "holdfast", "lab", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def verdict_lines(*words: str) -> list[str]:
    """The verdict of a run on the command line, in the words of a scenario file."""
    run = json.loads(holdfast("run", *words, "--json"))
    facts = {"lost": run["lost"], "refused but kept": run["refused_kept"]}
    lists = [f"{name}: {' '.join(labels)}" for name, labels in facts.items() if labels]
    return [f"outcome: {run['outcome']}", *lists, f"verdict: {run['verdict']} ({run['reason']})"]


def step_through(page: Page) -> None:
    """Press the button for the next step until the end."""
    next_step = page.get_by_role("button", name="Next step")
    place = page.locator("#slider")
    most = int(place.get_attribute("max") or "")
    for _ in range(most):
        if int(place.input_value()) == most:
            return
        next_step.click()
    assert int(place.input_value()) == most


def test_the_scenario_ends_as_on_the_command_line(playground: Page) -> None:
    expect(playground.locator("#scenario")).to_have_value(SCENARIO)
    for variant in ("before", "after"):
        playground.locator("#variant").select_option(variant)
        expect(playground.locator("#shell")).to_contain_text(f"--variant {variant}")
        step_through(playground)
        lines = verdict_lines(SCENARIO, "--variant", variant)
        expect(playground.locator("#picture")).to_contain_text(lines[0].removeprefix("outcome: "))
        assert playground.locator("#verdict").inner_text().splitlines() == lines


def test_explain_says_what_the_command_line_says(playground: Page) -> None:
    expect(playground.locator("#record")).to_have_value("m2")
    playground.get_by_role("button", name="Explain").click()
    explanation = playground.locator("#explanation")
    expect(explanation).to_contain_text("was acknowledged to the producer and is gone")
    printed = holdfast("explain", SCENARIO, "--variant", "before", "--record", "m2")
    assert explanation.inner_text().strip() == printed.strip()


def test_free_play_loses_a_record_and_the_link_shows_it(
    playground: Page, chrome: BrowserContext, tmp_path: Path
) -> None:
    playground.locator("#scenario").select_option("free-play")
    press = partial(press_button, playground)
    press("Send m0, acks=1: b1", "b1 acknowledges offset=0")
    press("Drop b2 → b1: Fetch from 0", "network: b2->b1 FetchRequest is lost")
    press("Lose power: b1", "b1 loses power")
    press("Expire session: b1", "controller: leader=b2")
    verdict = playground.locator("#verdict")
    expect(verdict).to_contain_text("outcome: lost")
    expect(verdict).to_contain_text("lost: m0")
    assert "do=crash+b1" in playground.url

    other = chrome.new_page()
    other.goto(playground.url)
    expect(other.locator("#verdict")).to_have_text(verdict.inner_text())
    expect(other.locator("#sentence")).to_have_text(playground.locator("#sentence").inner_text())
    other.close()

    with playground.expect_download() as download:
        playground.get_by_role("button", name="Save as file").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert "lost m0" in holdfast("run", saved)

    playground.go_back()
    expect(playground.get_by_role("button", name="Expire session: b1")).to_be_visible()
    expect(playground.locator("#events")).not_to_contain_text("controller: leader=b2")


def press_button(page: Page, name: str, then: str) -> None:
    button = page.locator(f"#controls [aria-label='{name}']")
    expect(button).to_be_attached()
    if not button.is_visible():
        page.get_by_label(f"More for {name.rpartition(': ')[2]}").click()
    button.click()
    expect(page.locator("#events")).to_contain_text(then)


def test_a_command_replaces_the_later_steps(playground: Page) -> None:
    step_through(playground)
    playground.keyboard.press("Home")
    playground.keyboard.press("PageDown")
    playground.keyboard.press("PageDown")
    expect(playground.locator("#where")).to_contain_text("You are at step 1 of 7")
    playground.get_by_role("button", name="Restart: B").click()
    expect(playground.locator("#verdict-title")).to_have_text("VERDICT, IF IT ENDED HERE")
    assert "after=1&do=restart+B" in playground.url
    expect(playground.locator("#verdict")).to_contain_text("outcome: kept")


def test_a_guard_is_switched_off(playground: Page) -> None:
    guard = "fence-isr-expand"
    playground.locator("#scenario").select_option(guard)
    playground.locator("#variant").select_option("after")
    verdict = playground.locator("#verdict")
    expect(playground.locator("#shell")).to_contain_text(f"{guard} --variant after")
    expect(verdict).to_contain_text("outcome: kept")
    playground.get_by_text("Guards and settings").click()
    playground.get_by_role("checkbox", name=guard).uncheck()
    expect(verdict).to_contain_text("outcome: lost")
    words = (guard, "--variant", "after", "--without", guard)
    assert verdict.inner_text().splitlines() == verdict_lines(*words)
    assert playground.locator("#shell").inner_text() == " ".join(("holdfast lab step", *words))


def test_the_keyboard_is_enough(playground: Page) -> None:
    playground.locator("#scenario").select_option("free-play")
    send = playground.get_by_role("button", name="Send m0, acks=all: b1")
    send.focus()
    playground.keyboard.press("Enter")
    again = playground.get_by_role("button", name="Send m1, acks=all: b1")
    expect(again).to_be_visible()
    typed = playground.get_by_label("Any command of a scenario file")
    typed.fill("logs")
    typed.press("Enter")
    expect(playground.locator("#output")).to_contain_text("b1  | m0@0")
    typed.fill("deliver b9")
    typed.press("Enter")
    expect(playground.locator("#output")).to_contain_text("no node is called 'b9'")
    expect(again).to_be_visible()


def test_a_phone_needs_no_sideways_scrolling(playground: Page) -> None:
    playground.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    expect(playground.locator("#controls button").first).to_be_visible()
    playground.locator("#changes summary").click()
    playground.get_by_role("button", name="Explain").click()
    expect(playground.locator("#explanation")).to_be_visible()
    wider = playground.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0


def test_an_address_that_is_no_case_is_refused(playground: Page, address: str) -> None:
    playground.goto(f"{address}#scenario=loss-restart")
    expect(playground.get_by_role("alert")).to_contain_text("no scenario is called 'loss-restart'")
    playground.goto(f"{address}#scenario=free-play&do=explode+b1")
    expect(playground.get_by_role("alert")).to_contain_text("unknown command 'explode'")
