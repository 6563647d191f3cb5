"""The pytest plugin as another project sees it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.load import busy_machine

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

GOOD = """
    import asyncio
    import pytest

    @pytest.mark.holdfast(brokers=1, config={"num.partitions": "2"})
    def test_sync(holdfast_cluster):
        assert holdfast_cluster.brokers == (1,)
        holdfast_cluster.create_topic("t")
        holdfast_cluster.produce("t", ["a"])
        holdfast_cluster.assert_no_acked_loss()

    @pytest.mark.holdfast(brokers=2)
    def test_async(async_holdfast_cluster):
        async def scenario():
            cluster = async_holdfast_cluster
            await cluster.create_topic("t")
            assert await cluster.produce("t", ["a", "b"]) == 0
            leader = await cluster.leader("t")
            replica = await cluster.replica("t", 0, leader)
            assert replica.leo == 2
            assert len(cluster.bootstrap.split(",")) == 2
            await cluster.kill(leader)
            assert await cluster.wait_leader("t", not_broker=leader) != leader
        asyncio.run(scenario())
"""


def run(pytester: pytest.Pytester, *arguments: str, timeout: float = 250) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:randomly", *arguments, timeout=timeout)


def test_both_fixtures_work_without_any_other_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GOOD)
    run(pytester, "--strict-markers").assert_outcomes(passed=2)


MANY_TIMES = """
    import pytest

    @pytest.fixture(autouse=True, params=range({times}))
    def again(request):
        return request.param
"""


def readme_example() -> str:
    """The very text that a newcomer copies."""
    readme = Path(__file__).parents[2] / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    [example] = [block for block in blocks if "holdfast_cluster" in block]
    return str(example)


@pytest.mark.parametrize(
    "times", [2, pytest.param(50, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_the_example_in_the_readme_passes_on_a_busy_machine(
    pytester: pytest.Pytester, times: int
) -> None:
    pytester.makeconftest(MANY_TIMES.format(times=times))
    pytester.makepyfile(readme_example())
    with busy_machine():
        result = run(pytester, timeout=3000)
    result.assert_outcomes(passed=times)


def test_a_failing_test_shows_what_happened_and_keeps_the_trace(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.holdfast(brokers=1)
        def test_it(holdfast_cluster):
            holdfast_cluster.create_topic("t")
            holdfast_cluster.produce("t", ["a"])
            holdfast_cluster.ledger.acknowledgements[0] = (
                holdfast_cluster.ledger.acknowledgements[0]._replace(value=b"other")
            )
            holdfast_cluster.assert_no_acked_loss()
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*1 of 1 acknowledged records:*",
            "*b'other' was acknowledged, and b'a' is there*",
            "*holdfast timeline*",
            "*b1 *t-0*appended*",
            "*all events: holdfast lab replay *.trace",
            "*holdfast broker 1*",
            "*event=started*",
        ]
    )
    [trace] = (pytester.path / ".pytest_cache" / "d" / "holdfast").iterdir()
    command = [sys.executable, "-m", "holdfast", "lab", "replay", str(trace), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)


def test_a_broker_that_dies_by_itself_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.holdfast(brokers=1)
        def test_it(holdfast_cluster):
            os.kill(holdfast_cluster.entry(1).pid, 9)
            while holdfast_cluster.is_running(1):
                pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*brokers exited unexpectedly*", "*broker 1: exit code -9*"])


def test_a_marker_with_a_mistake_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.holdfast(broker=1)
        def test_it(holdfast_cluster):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*holdfast has no broker*"])


def test_workers_that_run_at_the_same_time_do_not_meet(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.holdfast(brokers=1)
        @pytest.mark.parametrize("number", range(4))
        def test_it(holdfast_cluster, number):
            holdfast_cluster.create_topic("t")
            for _ in range(5):
                holdfast_cluster.produce("t", [str(number)])
            assert holdfast_cluster.consume("t") == [b"%d" % number] * 5
        """
    )
    run(pytester, "-n", "2").assert_outcomes(passed=4)


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, holdfast.cluster.pytest_plugin as p;"
        "heavy = ('holdfast.protocol', 'holdfast.broker', 'confluent_kafka', 'asyncio');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.strip()
    assert "holdfast" not in loaded, loaded
    assert Path(sys.executable).exists()
