"""Kafka's own command-line tools against three brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clients.adapters.java_tools import (
    CONFIGS,
    CONSUMER,
    GROUPS,
    REASSIGN,
    TOOLS,
    WAIT_MS,
    JavaTools,
    moved,
)
from tests.clients.cases import Case, cases_of
from tests.clients.client import RefusedError
from tests.clients.world import World
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

PERFORMANCE = f"{TOOLS}ProducerPerformance"
VERIFIABLE = f"{TOOLS}VerifiableProducer"
API_VERSIONS = f"{TOOLS}BrokerApiVersionsCommand"
DUMP = f"{TOOLS}DumpLogSegments"
FEATURES = f"{TOOLS}FeatureCommand"


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[JavaTools]:
    made = JavaTools(world.bootstrap)
    yield made
    made.close()


@cases_of(JavaTools)
def test_java_tools(case: Case, client: JavaTools, world: World) -> None:
    case(client, world)


def test_a_throttled_reassignment_is_started_and_verified(client: JavaTools, world: World) -> None:
    topic = world.topic("throttled", assignment={0: [1, 2]})
    world.send_values(topic, 0, [b"x" * 1000] * 20)
    plan, option = moved(topic, 0, [3, 2]), "--reassignment-json-file"
    done = client.run_with_file(REASSIGN, option, plan, "--execute", "--throttle", "100000000")
    assert "The inter-broker throttle limit was set to 100000000 B/s" in done.out
    world.wait_replicas(topic, 0, [3, 2])
    done = client.run_with_file(REASSIGN, option, plan, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in done.out
    assert f"Clearing topic-level throttles on topic {topic}" in done.out
    throttled = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    assert [client.topic_configs(topic)[name] for name in throttled] == ["", ""]
    assert client.run(REASSIGN, "--list").out.strip() == "No partition reassignments found."


def test_a_slow_reassignment_is_listed_and_cancelled(client: JavaTools, world: World) -> None:
    topic = world.topic("cancelled", assignment={0: [1, 2]})
    world.send_values(topic, 0, [b"x" * 100_000] * 20)
    plan, option = moved(topic, 0, [3, 2]), "--reassignment-json-file"
    client.run_with_file(REASSIGN, option, plan, "--execute", "--throttle", "1000")
    output = client.run(REASSIGN, "--list").out
    assert f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1." in output
    done = client.run_with_file(REASSIGN, option, plan, "--cancel")
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in " ".join(
        done.out.split()
    )
    world.wait_replicas(topic, 0, [2, 1])  # what is left of 3, 2, 1
    plan = {"version": 1, "topics": [{"topic": topic}]}
    words = ("--broker-list", "2,3", "--generate")
    output = client.run_with_file(REASSIGN, "--topics-to-move-json-file", plan, *words).out
    assert "Proposed partition reassignment configuration" in output


def test_brokers_are_configured(client: JavaTools, world: World) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "2")
    output = client.run(CONFIGS, *entity, "--describe", "--all").out
    assert "node.id=2 sensitive=false" in output
    client.run(CONFIGS, *entity, "--alter", "--add-config", "log.cleaner.backoff.ms=14000")
    wait_until(
        lambda: "log.cleaner.backoff.ms=14000" in client.run(CONFIGS, *entity, "--describe").out,
        "the change is seen",
    )
    client.run(CONFIGS, *entity, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    with pytest.raises(RefusedError) as caught:
        client.run(CONFIGS, *entity, "--alter", "--add-config", "node.id=7")
    assert caught.value.error == "INVALID_REQUEST"


def test_the_performance_test_runs(client: JavaTools, world: World) -> None:
    topic = world.topic("measured", 3)
    words = ["--topic", topic, "--num-records", "5000", "--record-size", "1000"]
    output = client.run(PERFORMANCE, *words, "--throughput", "-1").out
    assert output.splitlines()[-1].startswith("5000 records sent, ")
    ends = [client.offsets(topic, partition)[1] for partition in range(3)]
    assert sum(ends) == 5000


def test_the_verifiable_producer_runs(client: JavaTools, world: World) -> None:
    topic = world.topic("verified")
    words = ["--topic", topic, "--max-messages", "50", "--bootstrap-server", client.bootstrap]
    begun = client.ask(tool=VERIFIABLE, args=words, background=True)["task"]

    def acked() -> list[int]:
        lines = [json.loads(line) for line in client.ask(look=begun)["out"].splitlines()]
        return [one["offset"] for one in lines if one["name"] == "producer_send_success"]

    wait_until(lambda: len(acked()) == 50, "all are acknowledged")
    assert acked() == list(range(50))
    assert client.ask(stop=begun)["code"] == 0


def test_a_console_consumer_without_a_group_reads_all(client: JavaTools, world: World) -> None:
    topic = world.topic("alone", 3)
    values = {b"%d" % number for number in range(30)}
    for number in range(30):
        world.send_values(topic, number % 3, [b"%d" % number])
    words = ("--topic", topic, "--from-beginning", "--max-messages", "30", "--timeout-ms", WAIT_MS)
    assert {line.encode() for line in client.run(CONSUMER, *words).out.split()} == values


def test_offsets_of_a_group_are_set_back(client: JavaTools, world: World) -> None:
    topic, group = world.topic("set-back"), world.name("group")
    world.send_values(topic, 0, [b"%d" % number for number in range(8)])
    words = ("--topic", topic, "--group", group, "--from-beginning")
    client.run(CONSUMER, *words, "--max-messages", "8", "--timeout-ms", WAIT_MS)
    assert client.committed(group, topic) == {0: 8}
    back = ("--reset-offsets", "--group", group, "--topic", topic, "--shift-by", "-5", "--execute")
    client.run(GROUPS, *back)
    assert client.committed(group, topic) == {0: 3}
    client.run(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    assert client.committed(group, topic) == {}


def test_versions_are_listed(client: JavaTools, world: World) -> None:
    """Everything this client needs is usable at its newest version, except transactions."""
    output = client.run(API_VERSIONS).out
    for port in world.ports.values():
        assert f"127.0.0.1:{port} (id: " in output
    for api in ("Produce(0): 0 to 13", "Fetch(1): 4 to 18", "Metadata(3): 0 to 13"):
        assert output.count(api) == 3
    assert "[unusable: " not in output
    assert "UNKNOWN(" not in output
    assert output.count("ConsumerGroupHeartbeat(68): 0 to 1 [usable: 1]") == 3


def test_features_are_described(client: JavaTools) -> None:
    """Those of Kafka's brokers, except KRaft's."""
    words = ["--bootstrap-server", client.bootstrap, "describe"]  # in this order only
    lines = client.ask(tool=FEATURES, args=words, input="")["out"].splitlines()
    output = {line.split()[1]: line.split()[2:8] for line in lines if line.startswith("Feature:")}
    names = ("group", "share", "streams", "transaction")
    off = ["SupportedMinVersion:", "0", "SupportedMaxVersion:", "0", "FinalizedVersionLevel:", "0"]
    on = ["SupportedMinVersion:", "0", "SupportedMaxVersion:", "1", "FinalizedVersionLevel:", "1"]
    assert output == {
        "eligible.leader.replicas.version": on,
        **{f"{name}.version": off for name in names},
    }


def test_files_are_dumped_beside_a_running_broker(client: JavaTools, world: World) -> None:
    """Also those of the active segment: its indexes exist, filled with zeros as in Kafka."""
    configs = {"segment.index.bytes": "40", "index.interval.bytes": "1"}
    topic = world.topic("dumped", configs=configs)
    world.send_values(topic, 0, [b"%d" % number for number in range(4)])
    world.kept_by_all(topic, 0, 4)
    folder = world.folder(1, topic, 0)
    files = sorted([*folder.glob("*.log"), *folder.glob("*.index"), *folder.glob("*.timeindex")])
    assert [path.suffix for path in files] == [".index", ".log", ".timeindex"]
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert (before[files[0].name], before[files[2].name]) == (40, 36)
    names = ",".join(map(str, files))
    output = client.ask(tool=DUMP, args=["--files", names, "--print-data-log"])
    assert output["code"] == 0, output
    assert "payload: 3" in output["out"]
    sane = client.ask(tool=DUMP, args=["--files", names, "--index-sanity-check"])
    assert sane["out"].count("passed sanity check") == 2, sane
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == before
    world.send_values(topic, 0, [b"%d" % number for number in range(20)])
    world.kept_by_all(topic, 0, 24)
