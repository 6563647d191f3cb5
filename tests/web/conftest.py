"""A cluster of `holdfast up` with the console, and a page of it in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import BrowserContext, Page

from holdfast.cluster import Cluster
from holdfast.cluster.settings_for_tests import TEST_CONFIG
from holdfast.cluster.testserver.server import OWNER_SOCKET, serve_owner
from holdfast.web.console import Console
from tests.support.chromium import chromium, why_missing


class Served(NamedTuple):
    """A cluster and its console."""

    cluster: Cluster
    console: Console


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three brokers with a trace, a topic `flights` of two partitions, and a folder of reports."""
    reports = tmp_path_factory.mktemp("reports")
    text = "<title>Audit: Nothing acknowledged is lost</title><p>A report.</p>"
    (reports / "monday.html").write_text(text, encoding="utf-8")
    lost = "<title>Audit: 5,200 acknowledged records are lost</title>"
    (reports / "tuesday.html").write_text(lost, encoding="utf-8")
    (reports.parent / "secret.html").write_text("<title>secret</title>", encoding="utf-8")
    with Cluster(brokers=3, config=TEST_CONFIG, trace=True) as cluster:
        owner = serve_owner(cluster)
        console = Console(folder=cluster.data_dir, reports=reports)
        console.start()
        try:
            cluster.create_topic("flights", 2)
            cluster.produce("flights", ["one", "two", "three"])
            yield Served(cluster, console)
        finally:
            console.close()
            owner.close()
            (cluster.data_dir / OWNER_SOCKET).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    if reason := why_missing():
        pytest.skip(reason)
    profile: Path = tmp_path_factory.mktemp("profile")
    with chromium(profile) as context:
        yield context


@pytest.fixture
def page(served: Served, browser: BrowserContext) -> Iterator[Page]:
    """A fresh page of the console, with the token. Errors of its script fail the test."""
    errors: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(served.console.url)
    page.wait_for_selector(".card[data-broker]")
    yield page
    page.close()
    assert not errors
