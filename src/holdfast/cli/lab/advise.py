"""`holdfast advise`: what a combination of settings can lose, and the nearest safer one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from holdfast.cli.errors import BadInput, Unreachable
from holdfast.cli.lab.options import json_option
from holdfast.cli.lab.progress import watching
from holdfast.lab.scenarios.options import OptionError
from holdfast.search import LIMIT, VIOLATED
from holdfast.search.advise import (
    MOST_REPLICAS,
    Advice,
    Asked,
    AskedError,
    Given,
    Line,
    advise,
    ask_cluster,
    asked_of,
    of_consumer,
    of_logs,
    of_producer,
    read_file,
    setting_text,
)

SECONDS = 20.0
"""The limit for all searches together; counting survived failures comes after that."""
SHOWN = 4
"""The number of runs that a line names; --json has all."""
_file = click.Path(exists=True, dir_okay=False, path_type=Path)

_OF_LAB = {
    "min_insync": "min_insync_replicas",
    "acks": "acks",
    "flush": "flush",
    "flush_messages": "log_flush_interval_messages",
    "flush_ms": "log_flush_interval_ms",
    "idempotence": "idempotence",
    "retries": "retries",
    "reads": "reads",
    "commit": "commit",
}


@click.command(
    "advise",
    epilog="Exit codes: 0 nothing acknowledged can be lost within the bounds, 1 something can, "
    "2 a limit ended the search, 64 bad input, 69 no broker answers, 130 interrupted.",
)
@click.option("--replicas", type=click.IntRange(1, MOST_REPLICAS), metavar="N", help="[3]")
@click.option("--min-insync", type=click.IntRange(1), metavar="N", help="min.insync.replicas [1].")
@click.option("--acks", type=click.Choice(("0", "1", "all")), help="[all]")
@click.option("--unclean/--no-unclean", default=None, help="unclean.leader.election.enable [no].")
@click.option(
    "--flush", metavar="RULE", help="page-cache, every-append, every-t-ms, … [page-cache]"
)
@click.option("--flush-messages", type=click.IntRange(1), metavar="N", help="Of every-n-messages.")
@click.option("--flush-ms", type=click.IntRange(1), metavar="MS", help="Of every-t-ms.")
@click.option("--idempotence", type=click.Choice(("on", "off")), help="[on, if acks allow it]")
@click.option("--retries", type=click.IntRange(0), metavar="N", help="Of the producer.")
@click.option("--reads", type=click.Choice(("leader-only", "any-replica")), help="[leader-only]")
@click.option("--commit", type=click.Choice(("auto", "manual")), help="When consumers commit.")
@click.option("--server", type=_file, metavar="FILE", help="A server.properties.")
@click.option("--topic-config", type=_file, metavar="FILE", help="A topic's settings.")
@click.option("--producer", type=_file, metavar="FILE", help="A producer's settings.")
@click.option("--consumer", type=_file, metavar="FILE", help="A consumer's settings.")
@click.option("-b", "--bootstrap", metavar="HOST:PORT,…", help="Ask a running cluster …")
@click.option("-t", "--topic", metavar="TOPIC", help="… for this topic's settings.")
@click.option(
    "--failures",
    type=click.IntRange(1, MOST_REPLICAS),
    metavar="N",
    help="At most this many failures of a kind [all replicas].",
)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the runs that the search has found as scenario files.",
)
@json_option
@click.pass_context
def advise_command(
    ctx: click.Context, /, failures: int | None, save: Path | None, as_json: bool, **given: Any
) -> None:
    """Show what a combination of settings can lose, and under which faults.

    Every line is a run in the lab that can be repeated. Options override files, files override a
    running cluster; anything else has Kafka's default.
    """
    try:
        asked = asked_of(_givens(given))
    except (AskedError, OptionError) as error:
        raise BadInput(str(error), hint=error.hint or None) from None
    with watching() as watch:
        advice = advise(asked, failures=failures, seconds=SECONDS, watch=watch, say=_say)
    if save is not None:
        _save(save, advice)
    click.echo(
        json.dumps(advice.to_dict(), ensure_ascii=False, indent=2) if as_json else _text(advice)
    )
    ctx.exit({VIOLATED: 1, LIMIT: 2}.get(advice.verdict, 0))


def _say(text: str) -> None:
    click.echo(f"{text} …", err=True)


# Input.


def _givens(given: dict[str, Any]) -> Iterator[Given]:
    if (given["bootstrap"] is None) != (given["topic"] is None):
        raise BadInput("-b and --topic go together", hint="try -b 127.0.0.1:9092 --topic events")
    if given["bootstrap"] is not None:
        yield _running(given["bootstrap"], given["topic"])
    server, topic = _file_of("server", given["server"]), _file_of("topic", given["topic_config"])
    if given["server"] or given["topic_config"]:
        titles = [str(one) for one in (given["server"], given["topic_config"]) if one]
        yield of_logs(server, topic, " and ".join(titles), all_of_it=bool(given["server"]))
    if given["producer"]:
        yield of_producer(_file_of("producer", given["producer"]), str(given["producer"]))
    if given["consumer"]:
        yield of_consumer(_file_of("consumer", given["consumer"]), str(given["consumer"]))
    yield _options(given)


def _options(given: dict[str, Any]) -> Given:
    options = {key: str(given[name]) for name, key in _OF_LAB.items() if given[name] is not None}
    if given["unclean"] is not None:
        options["unclean"] = "on" if given["unclean"] else "off"
    return Given(source="command line", replicas=given["replicas"], options=options)


def _file_of(kind: str, path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # as Java reads such files
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    return read_file(kind, text, str(path))


def _running(bootstrap: str, topic: str) -> Given:
    from holdfast.cluster import Client, ClusterError
    from holdfast.cluster.client.client import UnreachableError, addresses

    try:
        known = addresses(bootstrap)
    except ClusterError as error:
        raise BadInput(f"-b: {error}", hint="try -b 127.0.0.1:9092,127.0.0.1:9093") from None
    try:
        with Client(known) as client:
            return ask_cluster(client, topic, bootstrap)
    except UnreachableError as error:
        raise Unreachable(str(error), hint="is the cluster running?") from None
    except ClusterError as error:
        raise BadInput(str(error), hint="is the cluster running?") from None


# Output.


def _save(folder: Path, advice: Advice) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(advice.lines, 1):
            for one in line.loss.evidence:
                if one.scenario_text is not None:
                    path = folder / f"{number:02}_{line.loss.outcome}.scenario"
                    path.write_text(one.scenario_text, encoding="utf-8")
                    click.echo(f"saved: {path}", err=True)
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror}") from None


def _text(advice: Advice) -> str:
    return "\n".join(
        (
            *_asked(advice.asked),
            "",
            *_found(advice),
            "",
            *_survives(advice),
            *_safer(advice),
            *_unfinished(advice),
        )
    )


def _asked(asked: Asked) -> Iterator[str]:
    settings = {"replicas": str(asked.replicas), **asked.options}
    for key, text in settings.items():
        yield f"{key.replace('_', '.'):28} {text:14} {asked.sources.get(key, '')}".rstrip()
    if asked.not_looked_at:
        yield f"not considered:  {', '.join(asked.not_looked_at)}"


def _found(advice: Advice) -> Iterator[str]:
    for title, of_kind in (("can be lost", True), ("can go wrong, with nothing lost", False)):
        lines = [one for one in advice.lines if one.loss.is_loss is of_kind]
        if lines:
            yield f"What {title}:"
            for line in lines:
                yield from _line(line)
        elif of_kind:
            yield "Nothing acknowledged can be lost within the bounds:"
            states = sum(one.distinct for one in advice.searched)
            yield f"  {len(advice.searched)} searches, {states:,} states; every scenario that fits"


def _line(line: Line) -> Iterator[str]:
    yield f"- {line.loss.faults}: {line.loss.meaning}"
    for one in line.loss.evidence[:SHOWN]:
        yield f"    {one.title}"
        yield f"      {one.command}"
    more = len(line.loss.evidence) - SHOWN
    if more > 0:
        yield f"    and {more} more (--json)"
    helps = (
        " | ".join(setting_text(one) for one in line.remedies) or "no single change that was tried"
    )
    yield f"    what helps: {helps}"
    if line.undecided:
        yield f"    not decided in time: {' | '.join(setting_text(one) for one in line.undecided)}"


def _survives(advice: Advice) -> Iterator[str]:
    yield f"Simultaneous failures that writes survive:        {advice.price.writes_survive}"
    yield f"Simultaneous power failures that records survive: {advice.data_survives}"
    yield f"  the same while as few are in sync as writes need: {advice.data_survives_least}"


def _safer(advice: Advice) -> Iterator[str]:
    nearest = advice.nearest
    if nearest is None:
        return
    yield ""
    yield f"Nearest safer setting: {nearest.setting_text}"
    rows: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("fewest copies at an acknowledgement", lambda one: one.copies_least),
        ("round trips to an acknowledgement", lambda one: f"{one.round_trips:g}"),
        ("flushes per record, all disks", lambda one: f"{one.flushes:g}"),
        ("failures that writes survive", lambda one: one.writes_survive),
    )
    for title, value in rows:
        yield f"  {title:38} {value(nearest.before)} -> {value(nearest.after)}"


def _unfinished(advice: Advice) -> Iterator[str]:
    for one in advice.searched:
        if one.verdict == LIMIT:
            yield f"Not finished: {one.faults}, {one.distinct:,} states; all of it: {one.command}"
