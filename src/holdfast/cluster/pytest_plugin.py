"""A pytest plugin for any project: starts a real cluster in a second, and injects faults into it.

    @pytest.mark.holdfast(brokers=3, config={"min.insync.replicas": "2"})
    def test_nothing_is_lost(holdfast_cluster):
        holdfast_cluster.create_topic("events")
        holdfast_cluster.produce("events", ["one", "two"])
        holdfast_cluster.kill(holdfast_cluster.leader("events"))
        holdfast_cluster.wait_leader("events")
        holdfast_cluster.assert_no_acked_loss()

`async_holdfast_cluster` is the same cluster with coroutines, for any async test runner. Override
`holdfast_options` for options that only a fixture knows, such as the address of a ZooKeeper. A
cluster ends with its test. The report of a failing test ends with the last events of all brokers
and names the trace file to step through. Loading the plugin imports nothing else of Holdfast.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from holdfast.cluster.async_cluster import AsyncCluster
    from holdfast.cluster.cluster import Cluster

MARKER: Final = "holdfast"
OPTIONS: Final = ("brokers", "config", "log_dirs", "store", "trace")
MOST_EVENTS: Final = 40
"""How many a failing test's report shows."""
LAST_LINES: Final = 15

CLUSTER: Final = pytest.StashKey["Cluster"]()
"""The cluster whose events are added to the report if the test fails."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(brokers=3, config={{}}, store='embedded', trace=True): the cluster that "
        "holdfast_cluster starts; store may be 'zookeeper:HOST:PORT'",
    )


@pytest.fixture
def holdfast_options() -> dict[str, Any]:
    """Options like the marker's, for values known only when tests run; override it."""
    return {}


@pytest.fixture
def holdfast_cluster(
    request: pytest.FixtureRequest, holdfast_options: dict[str, Any]
) -> Iterator[Cluster]:
    """A running cluster for this test; `@pytest.mark.holdfast(...)` sets its options."""
    cluster = _made(request.node, holdfast_options)
    cluster.start()
    request.node.stash[CLUSTER] = cluster
    try:
        yield cluster
        died = cluster.died()
    finally:
        cluster.close(clean=False)
    if died:
        deaths = "\n".join(f"broker {broker}: {words}" for broker, words in died.items())
        pytest.fail(f"brokers exited unexpectedly\n{deaths}", pytrace=False)


@pytest.fixture
def async_holdfast_cluster(holdfast_cluster: Cluster) -> AsyncCluster:
    """The same cluster, with coroutines."""
    from holdfast.cluster.async_cluster import AsyncCluster

    return AsyncCluster(holdfast_cluster)


def _made(item: pytest.Item, found: dict[str, Any]) -> Cluster:
    from holdfast.cluster.cluster import Cluster
    from holdfast.cluster.settings_for_tests import TEST_CONFIG

    options: dict[str, Any] = {"trace": True, **found}
    for marker in reversed(list(item.iter_markers(MARKER))):  # the nearest marker wins
        options.update(marker.kwargs)
        if marker.args:
            raise pytest.UsageError(f"{MARKER} takes keywords: {', '.join(OPTIONS)}")
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise pytest.UsageError(f"{MARKER} has no {', '.join(unknown)}: {', '.join(OPTIONS)}")
    store = options.get("store")
    if store is not None and store.startswith("zookeeper:") and "/" not in store:
        # Tests that run at the same time on one ZooKeeper need separate nodes.
        import uuid

        options["store"] = f"{store}/holdfast-{uuid.uuid4().hex[:12]}"
    options["config"] = {**TEST_CONFIG, **(options.get("config") or {})}
    return Cluster(**options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last events to a failing test's report, while the brokers still run."""
    report = yield
    if report.when == "call" and report.failed and CLUSTER in item.stash:
        try:
            report.sections += _sections(item, item.stash[CLUSTER])
        except OSError as error:
            report.sections.append(("holdfast timeline", f"cannot be read: {error}"))
    return report


def _sections(item: pytest.Item, cluster: Cluster) -> list[tuple[str, str]]:
    from holdfast.cluster import timeline

    sections = []
    merged = cluster.timeline()
    if merged is not None:
        lines = timeline.last_events(merged, MOST_EVENTS)
        kept = _keep(item, merged)
        if kept is not None:
            lines.append(f"all events: holdfast lab replay {kept}")
        sections.append(("holdfast timeline", "\n".join(lines)))
    for broker in cluster.brokers:
        output = cluster.files(broker).output
        if output.exists():
            last = output.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
            sections.append((f"holdfast broker {broker}", "\n".join(last)))
    return sections


def _keep(item: pytest.Item, trace: Path) -> Path | None:
    """A copy of the trace that outlasts the cluster, in pytest's cache."""
    cache = getattr(item.config, "cache", None)
    if cache is None:
        return None
    name = re.sub(r"[^\w.-]+", "_", item.nodeid)[-120:]
    target = Path(cache.mkdir("holdfast")) / f"{name}.trace"
    shutil.copyfile(trace, target)
    return target
