"""Runs commands of `holdfast` against one cluster."""

from __future__ import annotations

import itertools
import json
from typing import Any

from click.testing import CliRunner

from holdfast.cli import main

_names = itertools.count()


class Shell:
    """A cluster's address, given to every command."""

    def __init__(self, bootstrap: str, brokers: tuple[int, ...], kind: str) -> None:
        self.bootstrap = bootstrap
        self.brokers = brokers
        self.kind = kind
        """holdfast or kafka."""

    def run(self, *arguments: str, stdin: bytes = b"", code: int = 0) -> str:
        """Stdout, if the command ends with this code; stderr otherwise in the failure."""
        return self.ended(*arguments, stdin=stdin, code=code)[0]

    def ended(self, *arguments: str, stdin: bytes = b"", code: int = 0) -> tuple[str, str]:
        """Stdout and stderr."""
        command = [*arguments, "-b", self.bootstrap]
        done = CliRunner().invoke(main, command, input=stdin, prog_name="holdfast")
        assert done.exit_code == code, (command, done.exit_code, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def json(self, *arguments: str) -> Any:
        """The document that a command prints."""
        return json.loads(self.run(*arguments, "--json"))

    def lines(self, *arguments: str) -> list[str]:
        """The lines that a command prints."""
        return self.run(*arguments).splitlines()

    def new_name(self, opening: str) -> str:
        """A topic or group that no other test uses."""
        return f"{opening}-{next(_names)}"

    def topic(self, partitions: int = 1, *options: str) -> str:
        """A new topic."""
        name = self.new_name("orders")
        self.run("topics", "create", "-t", name, "--partitions", str(partitions), *options)
        return name
