"""A cluster that does not answer, and the properties that lead to one."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.commands.shell import Shell

COMMANDS = (
    ("topics", "list"),
    ("produce", "-t", "x"),
    ("consume", "-t", "x"),
    ("groups", "list"),
    ("configs", "list", "--cluster"),
    ("brokers", "list"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda one: one[0])
def test_a_closed_port_is_69_and_says_which(arguments: tuple[str, ...]) -> None:
    with socket.socket() as held:  # bound, but nobody listens
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        out, words = Shell(f"127.0.0.1:{port}", (), "").ended(*arguments, code=69)
    assert out == ""
    assert words.startswith(f"holdfast: no broker at 127.0.0.1:{port}: Connection refused (")


def test_an_address_that_is_none_is_64() -> None:
    for address in ("127.0.0.1", "127.0.0.1:x", ":9092"):
        assert "is not HOST:PORT" in Shell(address, (), "").ended("topics", "list", code=64)[1]


@pytest.mark.slow
def test_a_listener_that_is_no_broker_is_69() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        _, words = Shell(f"127.0.0.1:{port}", (), "").ended("topics", "list", code=69)
        assert words.startswith(f"holdfast: no Kafka broker answers at 127.0.0.1:{port}: ")
        server.shutdown(socket.SHUT_RDWR)


def _hang_up(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


@pytest.mark.slow
def test_a_file_names_the_cluster_and_its_other_properties_are_used(
    holdfast: Shell, tmp_path: Path
) -> None:
    topic = holdfast.topic()
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={holdfast.bootstrap}\n"
        "key.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
        "client.id=me\n"
    )
    from click.testing import CliRunner

    from holdfast.cli import main

    done = CliRunner().invoke(main, ["topics", "list", "--command-config", str(file)])
    assert done.exit_code == 0
    assert topic in done.stdout
    assert done.stderr == "key.deserializer is not a property of librdkafka: ignored\n"
