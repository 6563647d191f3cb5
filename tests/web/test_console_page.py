"""The console in real Chromium: a leader is killed by its own button, and the page explains it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast.lab import parse, run_scenario
from tests.support.chromium import PHONE, WAIT_MS
from tests.web.conftest import Served

pytestmark = pytest.mark.slow
expect.set_options(timeout=WAIT_MS)


def open_view(page: Page, hash_: str) -> None:
    page.evaluate("wanted => { location.hash = wanted; }", hash_)


def log_ends(page: Page) -> Locator:
    """The log ends of the replicas in the table under the lanes."""
    return page.locator("tbody tr td:nth-child(5)")


def test_the_token_leaves_the_address(page: Page) -> None:
    assert "token" not in page.url
    assert page.title() == "Overview · Holdfast console"


def test_the_overview_shows_brokers_topics_and_events(served: Served, page: Page) -> None:
    expect(page.locator(".card[data-broker]")).to_have_count(3)
    expect(page.locator(".card", has_text="controller")).to_have_count(1)
    expect(page.locator("th", has_text="flights")).to_be_visible()
    expect(page.locator(".events li").first).to_be_visible()
    page.locator(".card[data-broker='1'] [data-what=dies]").click()
    expect(page.locator(".answer", has_text="If b1 is killed now")).to_be_visible()


def test_the_lanes_move_as_records_arrive(served: Served, page: Page) -> None:
    open_view(page, "#partition/flights-1")
    lanes = page.locator("svg.hf")
    served.cluster.produce("flights", ["a"] * 3, 1)
    expect(lanes).to_contain_text("LEO 3")
    before = lanes.inner_html()
    served.cluster.produce("flights", ["b"] * 4, 1)
    expect(lanes).to_contain_text("LEO 7")
    expect(lanes).to_contain_text("HW 7")
    assert lanes.inner_html() != before
    expect(log_ends(page)).to_have_text(["7"] * 3)


def test_a_leader_is_killed_by_the_pages_button(served: Served, page: Page, tmp_path: Path) -> None:
    cluster = served.cluster
    leader, isr = cluster.leader("flights", 0), cluster.wait_isr("flights", 0)
    before = served.console.watcher.seen.partitions["flights-0"]
    heir = next(one for one in before.replicas if one in isr and one != leader)
    epoch = before.leader_epoch + 1
    open_view(page, "#partition/flights-0")
    page.get_by_role("link", name="Break the leader").click()

    # What is expected is said before.
    expected = page.locator(".expected")
    expect(expected).to_contain_text(f"flights-0 → b{heir}")
    expect(expected).to_contain_text("No committed record is lost")
    page.get_by_role("button", name=f"Kill b{leader}").click()

    # What happened is said after.
    happened = page.locator("[data-action] .happened").first
    expect(happened).to_contain_text(f"b{leader}: running → killed")
    expect(happened).to_contain_text(f"flights-0 b{leader} → b{heir}")
    assert not cluster.is_running(leader)
    assert cluster.wait_leader("flights", 0, not_broker=leader) == heir

    # The lanes go on without it, and the page says why it is out.
    open_view(page, "#partition/flights-0")
    lanes = page.locator("svg.hf")
    expect(lanes).to_contain_text(f"LEADER e{epoch}")
    expect(lanes).to_contain_text("✖ killed")
    end = max(int(one) for one in log_ends(page).all_inner_texts())
    cluster.produce("flights", ["later"])
    expect(lanes).to_contain_text(f"LEO {end + 1}")
    page.get_by_role("button", name=f"Why is b{leader} not in sync?").click()
    answer = page.locator(".answers")
    expect(answer).to_contain_text(f"b{leader} was killed: it does not fetch.")
    expect(answer).to_contain_text(f"restart b{leader}")
    answer.get_by_text("What led there").click()
    expect(answer).to_contain_text(f"b{leader} dies")

    replays_and_explains(page, epoch)
    saves_a_scenario(page, tmp_path)
    cluster.restart(leader)
    expect(page.locator(".heading")).to_contain_text("healthy")


def test_a_partition_without_a_leader_is_explained(served: Served, page: Page) -> None:
    """The whole cluster is killed by the page, and started again."""
    expect(page.locator(".card[data-broker]")).to_have_count(3)
    before = served.cluster.isr("flights", 1)
    for broker in (1, 2, 3):
        open_view(page, f"#faults?call=kill&brokers={broker}")
        page.get_by_role("button", name=f"Kill b{broker}").click()
        expect(page.locator("[data-action]").first).to_contain_text(f"b{broker}: running → killed")
    open_view(page, "#partition/flights-1")
    expect(page.locator(".heading")).to_contain_text("offline")
    page.get_by_role("button", name="Why is it offline?").click()
    answer = page.locator(".answers")
    expect(answer).to_contain_text("No replica that surely has every committed record is alive")
    expect(answer).to_contain_text("b3 was killed")
    expect(answer).to_contain_text("restart b3")
    served.cluster.restart(1, 2, 3)
    expect(page.locator(".heading")).to_contain_text("healthy")
    assert sorted(served.cluster.isr("flights", 1)) == sorted(before)


def replays_and_explains(page: Page, epoch: int) -> None:
    """The stepper has the election; the lab has an account of a record."""
    page.locator("#stop").click()
    stepper = page.frame_locator("iframe")
    expect(stepper.locator("#events")).to_contain_text(f"becomes leader epoch={epoch}")
    count = stepper.locator("#count").inner_text()
    assert re.match(r"(\d+) / \1 ", count), "it opens at the end"
    stepper.locator("[data-go=back]").click()
    expect(stepper.locator("#count")).not_to_have_text(count)
    page.locator("#stop").click()
    expect(page.locator("iframe")).to_have_count(0)
    page.get_by_label("Offset").fill("0")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".answers")).to_contain_text("is where it should be")


def saves_a_scenario(page: Page, folder: Path) -> None:
    """The file runs in the lab, with the output that it has."""
    with page.expect_download() as download:
        page.locator("#save").click()
    path = folder / "saved.scenario"
    download.value.save_as(path)
    scenario = parse(path.read_text(encoding="utf-8"), path.name)
    run = run_scenario(scenario, scenario.variants[0])
    assert not run.mismatches
    assert run.verdict.outcome == "kept"


def test_without_the_token_the_page_only_looks(served: Served, page: Page) -> None:
    page.evaluate("() => sessionStorage.clear()")
    open_view(page, "#faults?call=kill&brokers=1")
    expect(page.get_by_role("note")).to_contain_text("lacks the token")
    expect(page.locator("#do")).to_be_disabled()


def test_the_keyboard_is_enough(served: Served, page: Page) -> None:
    open_view(page, "#partitions")
    rows = page.get_by_role("grid", name="Partitions")
    expect(rows.get_by_role("row").first).to_be_visible()
    rows.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(rows.locator("[aria-selected=true]")).to_have_attribute("data-name", "flights-1")
    page.keyboard.press("Enter")
    expect(page.locator("h2", has_text="flights-1")).to_be_visible()


def test_a_phone_needs_no_sideways_scrolling(served: Served, page: Page) -> None:
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    for view in ("overview", "partitions", "partition/flights-0", "groups", "faults", "reports"):
        open_view(page, f"#{view}")
        expect(page.locator(f".view.{view.split('/')[0]}")).to_be_visible()
        wider = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{view} is {wider} px too wide"


def test_reports_are_listed(served: Served, page: Page) -> None:
    open_view(page, "#reports")
    expect(page.get_by_role("link", name="Audit: Nothing acknowledged is lost")).to_be_visible()
