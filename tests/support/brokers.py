"""Three brokers as processes on free loopback ports, for tests that use one cluster together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.waiting import wait_until
from tests.support.zookeeper import free_ports

STOP_S = 60.0


class Brokers:
    """Broker processes that agree through one embedded store."""

    def __init__(self, folder: Path, settings: Mapping[str, str], count: int = 3) -> None:
        self.folder = folder
        self.ports = dict(zip(range(1, count + 1), free_ports(count), strict=True))
        self._settings = dict(settings)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def log_dir(self, broker: int) -> Path:
        """Where a broker keeps its partitions."""
        return self.folder / f"broker-{broker}"

    def start(self) -> None:
        """Returns when all have registered; what they say is in `out-N`."""
        for broker in self.ports:
            self._launch(broker)
        for broker in self.ports:
            wait_until(lambda broker=broker: self._is_up(broker), f"broker {broker} starts")

    def stop(self) -> None:
        """Cleanly; a broker that hangs is killed and the test run told."""
        for process in self._processes.values():
            process.terminate()
        try:
            for process in self._processes.values():
                process.wait(STOP_S)
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()

    def said(self) -> str:
        """All that the brokers had to say."""
        files = [self.folder / f"out-{broker}" for broker in self.ports]
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)

    def _launch(self, broker: int) -> None:
        settings = {
            "node.id": str(broker),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]}",
            "log.dirs": str(self.log_dir(broker)),
            "holdfast.store": str(self.folder / "store.sqlite"),
            **self._settings,
        }
        file = self.folder / f"server-{broker}.properties"
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        file.write_text(text, encoding="utf-8")
        with (self.folder / f"out-{broker}").open("ab") as out:
            self._processes[broker] = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "server", "start", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def _is_up(self, broker: int) -> bool:
        told = (self.folder / f"out-{broker}").read_text(encoding="utf-8", errors="replace")
        assert self._processes[broker].poll() is None, f"broker {broker} ended:\n{told[-2000:]}"
        return "started" in told
