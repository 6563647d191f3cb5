"""Debian's ZooKeeper on free loopback ports, for tests; killed, paused and restarted at will.

    server = ZooKeeperServer(folder)     # or ZooKeeperEnsemble(folder), three servers
    server.start()                       # returns when it serves
    server.connect_string                # "127.0.0.1:41123"
    server.pause(); server.resume()      # SIGSTOP, SIGCONT
    server.kill(); server.start()        # SIGKILL; starts again with the same data and port
    server.stop()                        # SIGTERM; harmless if it does not run; its port is let go

Tests ask for the fixtures `zookeeper` and `zookeeper_ensemble` (tests/conftest.py): one server, or
one ensemble, per test run; skipped with a message if it is not installed. A test that breaks it
repairs it. Give each test its own folder, `f"{zookeeper.connect_string}/my-test"`. Mark it `slow`.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from holdfast.cluster.processes.ports import Port
from holdfast.cluster.processes.processes import identify
from tests.support.ending import ended
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
JAR_FOLDERS = (ROOT / ".venv/zookeeper/usr/share/java", Path("/usr/share/java"))
JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java")
HOST = "127.0.0.1"
TICK_MS = 100
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

SETTINGS = f"""\
tickTime={TICK_MS}
initLimit=100
syncLimit=50
minSessionTimeout={2 * TICK_MS}
maxSessionTimeout=60000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
"""


def why_missing() -> str | None:
    """Why ZooKeeper cannot run here, or None."""
    if shutil.which("java") is None:
        return "ZooKeeper needs java"
    if _jar_folder() is None:
        return "Debian's ZooKeeper is not here: make zookeeper"
    return None


class ZooKeeperServer:
    """One server with its own folder and port."""

    def __init__(
        self,
        folder: Path,
        *,
        host: str = HOST,
        port: int | None = None,
        more_settings: str = "",
        command: Sequence[str] = (),
    ) -> None:
        """`command`: what starts a process where it shall run, such as a network namespace."""
        self._folder = folder
        self._command = tuple(command)
        self.host = host
        self._settings = more_settings
        self._process: subprocess.Popen[bytes] | None = None
        self._held: Port | None = None
        if port is None:
            # Ours also while it is down, or a client that tries to reach it could get it.
            self._held = Port()
            port = self._held.number
        self.port = port

    @property
    def connect_string(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when it serves; its output is in `out` in its folder."""
        self.launch()
        self.wait_serving()

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert not self.is_running, "it runs already"
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "zoo.cfg"
        own = f"dataDir={self._folder}/data\nclientPort={self.port}\n"
        own += f"clientPortAddress={self.host}\n"
        config.write_text(SETTINGS + own + self._settings, encoding="utf-8")
        folder = _jar_folder()
        assert folder is not None
        classpath = ":".join(str(folder / f"{jar}.jar") for jar in JARS)
        frugal = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [*self._command, "java", *frugal, "-cp", classpath, MAIN, str(config)],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def wait_serving(self) -> None:
        wait_until(self._serves, f"ZooKeeper in {self._folder} serves; see its file `out`")

    def stop(self) -> None:
        """As a service manager would."""
        self._end(signal.SIGTERM)
        if self._held is not None:
            self._held.release()

    def kill(self) -> None:
        """As a power failure would, but what was written stays."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It answers nothing any more, and its connections stay open."""
        assert self._process is not None
        known = identify(self._process.pid)
        assert known is not None
        self._signal(signal.SIGSTOP)
        wait_until(known.is_paused, "ZooKeeper stands still")

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def ask(self, word: str) -> str:
        """The answer to a four-letter word such as `srvr`; empty if there is none."""
        try:
            with socket.create_connection((self.host, self.port), timeout=2) as connection:
                connection.sendall(word.encode())
                return connection.makefile("rb").read().decode()
        except OSError:
            return ""

    def _serves(self) -> bool:
        assert self.is_running, f"ZooKeeper in {self._folder} ended; see its file `out`"
        return "Mode: " in self.ask("srvr")

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was never started"
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            ended(self._process, f"ZooKeeper in {self._folder}")
        self._process = None


class ZooKeeperEnsemble:
    """Three servers that agree with each other; any two of them serve."""

    def __init__(self, folder: Path, size: int = 3) -> None:
        self._held = [(Port(), Port()) for _ in range(size)]
        peers = "".join(
            f"server.{number}=127.0.0.1:{quorum.number}:{election.number}\n"
            for number, (quorum, election) in enumerate(self._held)
        )
        self.servers: Sequence[ZooKeeperServer] = tuple(
            ZooKeeperServer(folder / str(number), more_settings=peers) for number in range(size)
        )
        for number in range(size):
            (folder / str(number) / "data").mkdir(parents=True)
            (folder / str(number) / "data" / "myid").write_text(str(number), encoding="utf-8")

    @property
    def connect_string(self) -> str:
        return ",".join(server.connect_string for server in self.servers)

    def start(self) -> None:
        """Returns when all serve."""
        for server in self.servers:
            if not server.is_running:
                server.launch()
        for server in self.servers:
            server.wait_serving()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
        for port in (port for ports in self._held for port in ports):
            port.release()

    def leader(self) -> ZooKeeperServer:
        """The leader, as soon as a server reports that it leads."""
        found: list[ZooKeeperServer] = []

        def look() -> bool:
            found[:] = [s for s in self.servers if s.is_running and "Mode: leader" in s.ask("srvr")]
            return len(found) == 1

        wait_until(look, "one server leads")
        return found[0]


def _jar_folder() -> Path | None:
    return next((folder for folder in JAR_FOLDERS if (folder / "zookeeper.jar").exists()), None)
