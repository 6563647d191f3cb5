"""`holdfast groups`: list, describe, reset offsets, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from holdfast.cli.asking import CODES, connected, say
from holdfast.cli.errors import BadInput
from holdfast.cli.options import Asked, cluster_options, json_option
from holdfast.cli.tables import show, show_json

TARGETS = ("to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "to_datetime")


@click.group(epilog=CODES)
def groups() -> None:
    """List, describe, reset and delete consumer groups."""


@groups.command("list", epilog=CODES)
@cluster_options
@json_option
def list_command(asked: Asked, as_json: bool) -> None:
    """All consumer groups and their states."""
    with connected(asked) as connection:
        from holdfast.cluster.admin.groups import list_groups

        rows = list_groups(connection)
    if as_json:
        show_json("holdfast-groups/1", {"groups": rows})
    else:
        show(("group", "state", "type"), [(r["group"], r["state"], r["type"]) for r in rows])


@groups.command(epilog=CODES)
@click.option("-G", "--group", "names", multiple=True, help="[default: all]")
@cluster_options
@json_option
def describe(names: Sequence[str], asked: Asked, as_json: bool) -> None:
    """Members, committed offsets and lag.

    The lag is the number of offsets between the committed one and the high watermark.
    """
    with connected(asked) as connection:
        from holdfast.cluster.admin.groups import describe_groups

        rows = describe_groups(connection, names)
    if as_json:
        show_json("holdfast-group-descriptions/1", {"groups": rows})
    else:
        from holdfast.cli.groups.output import show_descriptions

        show_descriptions(rows)


@groups.command(epilog=CODES)
@click.option("-G", "--group", required=True, help="It must have no members.")
@click.option(
    *("-t", "--topic", "topics"),
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="This topic, or some of its partitions.",
)
@click.option("--all-topics", is_flag=True, help="Everything that the group has committed.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To the committed offset, or to the end.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--shift-by", type=int, help="Forward, or backward if negative.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after this time.")
@click.option(
    "--execute/--dry-run", default=False, show_default=True, help="Commit, or only show what would."
)
@cluster_options
@json_option
def reset(
    group: str,
    topics: Sequence[str],
    all_topics: bool,
    execute: bool,
    asked: Asked,
    as_json: bool,
    **target: Any,
) -> None:
    """Move a group's committed offsets. Without --execute, it only shows the new ones."""
    given = [name for name in TARGETS if target[name] not in (None, False)]
    if len(given) != 1:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in TARGETS)
        raise BadInput("name one target", hint=options)
    if bool(topics) == all_topics:
        raise BadInput("name the topics", hint="--topic TOPIC[:0,1], or --all-topics")
    wanted = None if all_topics else dict(map(_parted, topics))
    if target["to_datetime"] is not None:
        from holdfast.cli.records.positions import milliseconds

        target["to_ms"] = milliseconds(target["to_datetime"])
    del target["to_datetime"]
    with connected(asked) as connection:
        from holdfast.cluster.admin import offset_reset

        offset_reset.check_idle(connection, group)
        rows = offset_reset.plan(connection, group, wanted, offset_reset.Target(**target))
        if execute:
            offset_reset.execute(connection, group, rows)
    if as_json:
        show_json("holdfast-offset-reset/1", {"group": group, "executed": execute, "offsets": rows})
    else:
        titles = ("topic", "partition", "current", "new")
        show(titles, [[row[title] for title in titles] for row in rows], numbers=titles[1:])
    if not execute:
        say("nothing was changed: --execute commits the new offsets")


@groups.command(epilog=CODES)
@click.option("-G", "--group", "names", multiple=True, required=True)
@cluster_options
@json_option
def delete(names: Sequence[str], asked: Asked, as_json: bool) -> None:
    """Delete groups without members, and their offsets."""
    with connected(asked) as connection:
        from holdfast.cluster.admin.groups import delete_groups

        delete_groups(connection, names)
    if as_json:
        show_json("holdfast-group-change/1", {"groups": list(names), "result": "deleted"})
    say(f"{', '.join(names)}: deleted")


def _parted(text: str) -> tuple[str, list[int]]:
    topic, colon, partitions = text.partition(":")
    numbers = partitions.split(",") if colon else []
    if not topic or not all(one.isdecimal() for one in numbers):
        raise BadInput(f"--topic {text!r} is not TOPIC or TOPIC:0,1")
    return topic, [int(one) for one in numbers]
