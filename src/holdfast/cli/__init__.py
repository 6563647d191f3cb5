"""The command line: parses arguments, calls another package, prints the result.

It makes no decisions. `holdfast --help` loads nothing heavy: each command is imported when it runs.
"""

import click

from holdfast import __version__
from holdfast.cli.errors import BadInput
from holdfast.cli.lazy import LazyCommand, LazyGroup

__all__ = ["BadInput", "LazyCommand", "LazyGroup", "main"]

COMMANDS = {
    "demo": LazyCommand(
        "holdfast.cli.demo.command:demo", "Flights through a cluster that is broken, and the proof."
    ),
    "server": LazyCommand("holdfast.cli.broker.server:server", "One broker: start, check, config."),
    "up": LazyCommand("holdfast.cli.cluster.up:up", "Start a cluster on this machine."),
    "down": LazyCommand("holdfast.cli.cluster.down:down", "Stop it."),
    "status": LazyCommand(
        "holdfast.cli.cluster.status:status", "Brokers and partitions of a running cluster."
    ),
    "topics": LazyCommand(
        "holdfast.cli.topics.command:topics", "Topics: list, describe, create, alter, delete."
    ),
    "produce": LazyCommand("holdfast.cli.records.produce:produce", "Lines or files to a topic."),
    "consume": LazyCommand("holdfast.cli.records.consume:consume", "The records of a topic."),
    "groups": LazyCommand(
        "holdfast.cli.groups.command:groups", "Consumer groups: list, describe, reset, delete."
    ),
    "configs": LazyCommand(
        "holdfast.cli.configs.command:configs", "Settings of topics and brokers: list, set, …"
    ),
    "brokers": LazyCommand(
        "holdfast.cli.brokers.command:brokers", "Brokers, the controller, their disks."
    ),
    "fault": LazyCommand(
        "holdfast.cli.cluster.fault:fault", "Faults in a running cluster: kill, isolate, …"
    ),
    "console": LazyCommand(
        "holdfast.cli.cluster.console:console", "A web page that shows and breaks a live cluster."
    ),
    "chaos": LazyCommand(
        "holdfast.cli.cluster.chaos:chaos",
        "Random faults under load, then a check of every record.",
    ),
    "testserver": LazyCommand(
        "holdfast.cli.cluster.testserver:testserver", "Clusters for tests in any language."
    ),
    "log": LazyCommand(
        "holdfast.cli.broker.log:log",
        "Log files of Holdfast or Kafka: dump, verify, epochs, index.",
    ),
    "ingest": LazyCommand(
        "holdfast.cli.pipeline.ingest:ingest", "Topics into a Delta table with Spark, exactly once."
    ),
    "table": LazyCommand(
        "holdfast.cli.pipeline.table:table", "Tables of the ingest: compact, history."
    ),
    "audit": LazyCommand(
        "holdfast.cli.pipeline.audit:audit", "Was anything lost? Ledgers against logs and tables."
    ),
    "advise": LazyCommand(
        "holdfast.cli.lab.advise:advise_command",
        "What settings can lose, and the nearest safer ones.",
    ),
    "lab": LazyCommand(
        "holdfast.cli.lab.command:lab", "Scenarios: list, run, step, …; search, spec, compare."
    ),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 good, 64 bad input, 69 no broker answers, 70 a bug in Holdfast (with a "
    "report), 74 the machine failed (a full disk), 130 interrupted. Each command's help lists its "
    "own.",
)
@click.version_option(__version__, prog_name="holdfast", message="%(prog)s %(version)s")
def main() -> None:
    """A replicated commit log that speaks Kafka's wire protocol, and proves it lost nothing."""
