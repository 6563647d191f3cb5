"""Starts and stops a cluster: its files and its broker processes.

The process that starts a cluster owns it: the brokers are its children and end with it. Other
processes find the cluster by its data directory and send their requests to the owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.cluster.client.client import Client
from holdfast.cluster.errors import ClusterError
from holdfast.cluster.processes import broker_settings, manifest
from holdfast.cluster.processes.broker_settings import BrokerFiles
from holdfast.cluster.processes.manifest import EMBEDDED, BrokerEntry, Manifest
from holdfast.cluster.processes.ports import Port
from holdfast.cluster.processes.processes import (
    RESUME,
    STOP,
    BrokerProcess,
    broker_command,
    identify,
)
from holdfast.cluster.testserver import line_client
from holdfast.cluster.waiting import wait_for

# Generous, so that only a broker that hangs takes longer, also on a busy machine with a slow disk.
START_S: Final = 120.0
STOP_S: Final = 60.0
ASK_S: Final = 30.0
LOCK: Final = ".lock"
MOST_BROKERS: Final = 99
MOST_LOG_DIRS: Final = 16

Say = Callable[[str], None]


class Home(NamedTuple):
    """Where a broker with an address of its own runs, such as a network namespace."""

    host: str
    port: int
    command: tuple[str, ...]
    """The command that starts a process there: the broker's own command follows."""


class Lifecycle:
    """Brokers on this machine, below one data directory."""

    def __init__(  # noqa: PLR0913  # the options of a cluster, by keyword
        self,
        data_dir: str | Path | None = None,
        *,
        brokers: int | None = None,
        config: Mapping[str, str] | None = None,
        store: str | None = None,
        trace: bool | None = None,
        metrics: bool | None = None,
        log_dirs: int | None = None,
        homes: Mapping[int, Home] | None = None,
        say: Say = lambda _: None,
    ) -> None:
        """Without a directory: a temporary one, removed at the end.

        Options that are not given keep the values of the cluster's first start. Its defaults are
        three brokers, Holdfast's default settings, the embedded store, one log directory per
        broker, no trace and no metrics.
        """
        count = 3 if brokers is None else brokers
        if not 1 <= count <= MOST_BROKERS:
            raise ClusterError(
                f"{count} brokers cannot be started here", hint=f"1 to {MOST_BROKERS} can"
            )
        if log_dirs is not None and not 1 <= log_dirs <= MOST_LOG_DIRS:
            raise ClusterError(
                f"{log_dirs} log directories are no good", hint=f"1 to {MOST_LOG_DIRS} are possible"
            )
        broker_settings.check_config(config or {})
        self.is_ephemeral = data_dir is None
        made = tempfile.mkdtemp(prefix="holdfast-") if data_dir is None else data_dir
        self.data_dir = Path(made).absolute()
        self.say = say
        self._lock = threading.RLock()
        self._processes: dict[int, BrokerProcess] = {}
        self._ports: list[Port] = []
        self._held = -1
        self._isolated: dict[int, None] = {}
        """Brokers that are isolated."""
        self._homes = dict(homes or {})
        self._manifest = self._found(brokers, store)
        for broker, home in self._homes.items():
            self.entry(broker).host, self.entry(broker).port = home.host, home.port
        self._manifest.config.update(config or {})
        self._manifest.log_dirs = log_dirs or self._manifest.log_dirs
        if trace is not None:
            self._manifest.trace = trace
        if metrics is not None:
            self._manifest.metrics = metrics

    def _found(self, brokers: int | None, store: str | None) -> Manifest:
        """The existing cluster, or a new one; ClusterError if it is not the one asked for."""
        if not self.data_dir.exists() or not {one.name for one in self.data_dir.iterdir()} - {LOCK}:
            count = 3 if brokers is None else brokers
            entries = [BrokerEntry(number, 0) for number in range(1, count + 1)]
            return Manifest(store=store or EMBEDDED, brokers=entries)
        if not (self.data_dir / manifest.FILE).exists():
            raise ClusterError(
                f"{self.data_dir} is not empty and holds no cluster",
                hint="name an empty directory or a new one",
            )
        found = manifest.load(self.data_dir)
        if brokers not in (None, len(found.brokers)):
            raise ClusterError(
                f"the cluster in {self.data_dir} has {len(found.brokers)} brokers, not {brokers}",
                hint="leave the number out, or take another data directory",
            )
        if store not in (None, found.store):
            raise ClusterError(
                f"the cluster in {self.data_dir} uses the store {found.store}, not {store}",
                hint="take another data directory",
            )
        return found

    # Properties.

    @property
    def brokers(self) -> tuple[int, ...]:
        """Their ids, running or not."""
        return tuple(entry.id for entry in self._manifest.brokers)

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers, host:port,host:port."""
        return ",".join(entry.address for entry in self._manifest.brokers)

    @property
    def store(self) -> str:
        """embedded, or zookeeper:HOST:PORT/folder."""
        return self._manifest.store

    def files(self, broker: int) -> BrokerFiles:
        """The paths of a broker."""
        return broker_settings.files_of(self.data_dir, broker, self._manifest.log_dirs)

    def entry(self, broker: int) -> BrokerEntry:
        """ClusterError if there is no such broker."""
        for entry in self._manifest.brokers:
            if entry.id == broker:
                return entry
        known = ", ".join(map(str, self.brokers))
        raise ClusterError(f"there is no broker {broker} here", hint=f"there are {known}")

    def is_running(self, broker: int) -> bool:
        """Whether its process exists, paused or not."""
        self.entry(broker)
        process = self._processes.get(broker)
        return process is not None and process.exit_code is None

    def running(self) -> tuple[int, ...]:
        """Brokers whose process exists and is not paused."""
        return tuple(
            entry.id
            for entry in self._manifest.brokers
            if self.is_running(entry.id) and entry.state != manifest.PAUSED
        )

    def reachable(self) -> tuple[int, ...]:
        """Running brokers that clients can reach."""
        return tuple(broker for broker in self.running() if broker not in self._isolated)

    def died(self) -> dict[int, str]:
        """Brokers that ended by themselves, with the last lines of their output."""
        return {
            broker: f"exit code {process.exit_code}: {process.last_words()}"
            for broker, process in self._processes.items()
            if process.exit_code is not None and self.entry(broker).state == manifest.RUNNING
        }

    def ask(self, broker: int, call: str, timeout_s: float = ASK_S, **fields: Any) -> Any:
        """Send a request to a broker's control socket; ClusterError if the broker does not run."""
        if not self.is_running(broker):
            state = self.entry(broker).state
            reason = "has died" if state == manifest.RUNNING else f"is {state}"
            raise ClusterError(
                f"broker {broker} does not run: it {reason}", hint=f"restart broker {broker} first"
            )
        request = {"call": call, **fields}
        try:
            return line_client.ask(self.files(broker).control, request, timeout_s)
        except line_client.NoAnswerError as error:
            raise ClusterError(f"broker {broker} does not answer: {error.message}") from None

    # Start.

    def listen_from(self, first: int) -> None:
        """Before the first start: the first broker's port, the others follow."""
        for port, entry in enumerate(self._manifest.brokers, first):
            if entry.port not in (0, port):
                raise ClusterError(
                    f"the brokers in {self.data_dir} listen on their own ports, not from {first}",
                    hint="leave the port out, or take another data directory",
                )
            entry.port = port

    def start(self) -> None:
        """Start all brokers; returns when clients can use them."""
        try:
            self._prepare()
            for broker in self.brokers:
                self._spawn(broker)
            self.wait_ready(*self.brokers)
        except BaseException:
            self.close(clean=False)
            raise

    def _prepare(self) -> None:
        entries = self._manifest.brokers
        for entry in entries:  # before anything is touched
            settings = broker_settings.properties(self.data_dir, self._manifest, entry)
            broker_settings.rendered(settings)
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._hold()
        try:
            self._refuse_orphans()
            for entry in entries:
                if entry.id not in self._homes:  # elsewhere we cannot hold a port
                    entry.port = self._reserve(entry.port)
                    wants_metrics = self._manifest.metrics
                    entry.metrics_port = self._reserve(entry.metrics_port) if wants_metrics else 0
            self._save()
            (self.data_dir / "traces").mkdir(exist_ok=True)
            for entry in entries:
                settings = broker_settings.properties(self.data_dir, self._manifest, entry)
                files = self.files(entry.id)
                files.folder.mkdir(parents=True, exist_ok=True)
                files.properties.write_text(broker_settings.rendered(settings), encoding="utf-8")
        except BaseException:
            self._let_go()
            raise
        self._manifest.started_ms = time.time_ns() // 1_000_000
        owner = identify(os.getpid())
        self._manifest.owner_pid, self._manifest.owner_began = owner or (os.getpid(), "")
        self._save()

    def _reserve(self, port: int) -> int:
        self._ports.append(Port(port))
        return self._ports[-1].number

    def _hold(self) -> None:
        self._held = os.open(self.data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._held)
            self._held = -1
            raise ClusterError(
                f"a cluster is running in {self.data_dir} already",
                hint="stop it, or take another data directory",
            ) from None

    def _refuse_orphans(self) -> None:
        """Where the kernel does not kill orphans, one may remain for a moment, or hang."""
        for entry in self._manifest.brokers:
            process = entry.process
            if process is not None and process.is_alive():
                raise ClusterError(
                    f"broker {entry.id} of {self.data_dir} still runs as process {process.pid}",
                    hint=f"kill {process.pid}",
                )

    def _let_go(self) -> None:
        for port in self._ports:
            port.release()
        self._ports.clear()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _spawn(self, broker: int) -> None:
        with self._lock:
            files = self.files(broker)
            files.control.unlink(missing_ok=True)
            home = self._homes.get(broker)
            command = (*(home.command if home else ()), *broker_command(files.properties))
            process = BrokerProcess(list(command), files.output)
            self._processes[broker] = process
            self._isolated.pop(broker, None)
            entry = self.entry(broker)
            entry.pid, entry.began = process.id
            entry.state = manifest.RUNNING
            self._save()

    def wait_ready(self, *brokers: int) -> None:
        """Wait until these are registered and see all that run; all if none is named.

        Raises immediately if a broker ends early.
        """
        wanted = brokers or self.running()
        for broker in wanted:
            wait_for(
                partial(self._is_ready, broker),
                START_S,
                partial("broker {} is not ready".format, broker),
            )
            self.say(f"broker {broker} is up at {self.entry(broker).address}")
        alive = set(self.reachable())
        for broker in wanted:
            entry = self.entry(broker)
            with Client([(entry.host, entry.port)]) as client:
                wait_for(
                    partial(self._is_seen, client, alive),
                    START_S,
                    partial("broker {} does not see the others".format, broker),
                )

    def _is_ready(self, broker: int) -> bool | None:
        process = self._processes[broker]
        if process.exit_code is not None:
            words = process.last_words() or f"exit code {process.exit_code}"
            raise ClusterError(f"broker {broker} did not start: {words}")
        try:
            status = line_client.ask(self.files(broker).control, {"call": "status"}, ASK_S)
        except line_client.NoAnswerError:
            return None
        return True if status["state"] == "running" else None

    @staticmethod
    def _is_seen(client: Client, alive: set[int]) -> bool | None:
        try:
            metadata = client.metadata([])
        except ClusterError:
            return None
        seen = {broker.node_id for broker in metadata.brokers}
        return True if alive <= seen and metadata.controller_id in seen else None

    # Stop.

    def stop_all(self, timeout_s: float = STOP_S) -> None:
        """Stop all brokers at the same time in a controlled way; kill those that take too long."""
        with self._lock:
            for process in self._processes.values():
                if process.exit_code is None:
                    process.signal(RESUME)
                    process.signal(STOP)
            deadline = time.monotonic() + timeout_s
            for broker, process in self._processes.items():
                if not process.wait(max(0.0, deadline - time.monotonic())):
                    self.say(f"broker {broker} does not stop: killed")
                    process.kill()
                entry = self.entry(broker)
                if entry.state in (manifest.RUNNING, manifest.PAUSED):
                    entry.state = manifest.STOPPED
            self._save()

    def kill_all(self) -> None:
        """Kill all brokers immediately."""
        for process in self._processes.values():
            process.kill()

    def close(self, *, clean: bool = True) -> None:
        """End everything; remove the files of an ephemeral cluster, also after an interrupt."""
        try:
            if clean:
                self.stop_all()
        finally:
            self.kill_all()
            if self._held >= 0:
                self._manifest.owner_pid = 0
                self._save()
            self._let_go()
            if self.is_ephemeral:
                shutil.rmtree(self.data_dir, ignore_errors=True)

    def _save(self) -> None:
        with self._lock, contextlib.suppress(FileNotFoundError):
            self._manifest.save(self.data_dir)
