"""The demo's Spark driver: `holdfast ingest` in its own process, so that it can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

from holdfast.cli.demo.flights import SCHEMA, TOPIC
from holdfast.cli.errors import Failed

MEMORY: Final = "1g"
LAST_LINES: Final = 15


def conf_options() -> list[str]:
    """Spark's settings for a short demo on a small machine, as command line options."""
    from holdfast.pipeline.spark import QUICK

    settings = {**QUICK, "spark.driver.memory": MEMORY}
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


class Driver:
    """Starts, watches and ends the ingest process."""

    def __init__(self, bootstrap: str, folder: Path, *, goes_on_after_loss: bool) -> None:
        self.table = folder / "table"
        self._output = folder / "ingest.txt"
        self._litter = folder / "spark"
        """Spark's log, and what a killed driver leaves behind."""
        self._litter.mkdir()
        schema = folder / "flights.schema"
        schema.write_text(SCHEMA + "\n", encoding="utf-8")
        self._command = [
            *(sys.executable, "-m", "holdfast", "ingest", "--continuous"),
            *("-b", bootstrap, "--topic", TOPIC, "--table", str(self.table)),
            *("--value-format", "json", "--schema", str(schema)),
            *("--on-data-loss", "continue" if goes_on_after_loss else "stop"),
            *conf_options(),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, or continue after a kill."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # our own command
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "TMPDIR": str(self._litter)},
            )

    def kill(self) -> None:
        """SIGKILL: no clean-up. The Java process ends with its parent."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM: it finishes the current batch."""
        self.check()
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def check(self) -> None:
        """Raise Failed if it has ended by itself."""
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise Failed(f"the ingest has ended by itself, with exit code {code}")

    def last_lines(self) -> list[str]:
        """The last lines of the ingest and of Spark's log."""
        lines: list[str] = []
        for path in (*self._logs(), self._output):
            last = [line for line in _read(path).split("\n") if line.strip()][-LAST_LINES:]
            lines += [f"{path}:", *(f"  {line}" for line in last)] if last else []
        return lines

    def _logs(self) -> list[Path]:
        return sorted(self._litter.glob("*/spark.log"))

    def progress(self) -> object:
        """Changes when a batch makes progress. Log lines do not count: Spark may repeat them."""
        return sum(len(files) for _, _, files in os.walk(self.table))

    def landed(self) -> int:
        """Offsets of the topic that are in the table, from the newest committed batch."""
        checkpoint = self.table / "_checkpoint"
        done = sorted(int(one.name) for one in checkpoint.glob("commits/*") if one.name.isdecimal())
        if not done:
            return 0
        lines = (checkpoint / "offsets" / str(done[-1])).read_text(encoding="utf-8").splitlines()
        offsets = json.loads(lines[-1])[TOPIC]
        return sum(offsets.values())


def _read(path: Path) -> str:
    """None if the file is gone: an ingest that ends removes its own log."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
