"""`holdfast topics`: list, describe, create, alter, delete."""

from __future__ import annotations

from collections.abc import Sequence

import click

from holdfast.cli.asking import CODES, connected, say
from holdfast.cli.errors import BadInput
from holdfast.cli.options import Asked, cluster_options, json_option, settings_from, topic_option
from holdfast.cli.tables import show_json


@click.group(epilog=CODES)
def topics() -> None:
    """List, describe, create, alter and delete topics."""


@topics.command("list", short_help="All topics.", epilog=CODES)
@cluster_options
@json_option
def list_command(asked: Asked, as_json: bool) -> None:
    """All topics, and how many of their partitions miss replicas or a leader."""
    with connected(asked) as connection:
        from holdfast.cluster.admin.topics import list_topics

        rows = list_topics(connection)
    if as_json:
        show_json("holdfast-topics/1", {"topics": rows})
    else:
        from holdfast.cli.topics.output import show_list

        show_list(rows)


@topics.command(short_help="Leaders, ISR, ELR, offsets of every replica.", epilog=CODES)
@topic_option(required=False, multiple=True)
@cluster_options
@json_option
def describe(topics: Sequence[str], asked: Asked, as_json: bool) -> None:
    """Leaders, epochs, ISR, ELR, and the offsets of every replica; of all topics if none is named.

    A dash is something that the cluster does not tell, such as the offsets of a replica whose
    broker is down.
    """
    with connected(asked) as connection:
        from holdfast.cluster.admin.topics import describe_topics

        rows = describe_topics(connection, topics)
    if as_json:
        show_json("holdfast-topic-descriptions/1", {"topics": rows})
    else:
        from holdfast.cli.topics.output import show_descriptions

        show_descriptions(rows)


@topics.command(epilog=CODES)
@topic_option(required=True)
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="How many.  [default: the cluster's num.partitions]",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1),
    help="How many replicas of each.  [default: the cluster's default.replication.factor]",
)
@click.option(
    "--config", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the topic."
)
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@click.option("--dry-run", is_flag=True, help="Let the cluster check it, and create nothing.")
@cluster_options
@json_option
def create(
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    settings: Sequence[str],
    asked: Asked,
    as_json: bool,
    **given: bool,
) -> None:
    """Create a topic."""
    config = settings_from("--config", settings)
    with connected(asked) as connection:
        from holdfast.cluster.admin.topics import create_topic

        is_new = not (given["if_not_exists"] and topic in connection.metadata().topics)
        if is_new:
            create_topic(
                connection,
                topic,
                partitions=partitions or -1,
                replication_factor=replication_factor or -1,
                config=config,
                is_dry_run=given["dry_run"],
            )
    done = "could be created" if given["dry_run"] else "created"
    _done(topic, done if is_new else "exists already", as_json=as_json)


@topics.command(epilog=CODES)
@topic_option(required=True)
@click.option("--partitions", type=click.IntRange(1), help="The new, larger number of partitions.")
@click.option(
    "--config", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the topic."
)
@click.option(
    "--delete-config", "deleted", multiple=True, metavar="NAME", help="Back to its default."
)
@cluster_options
@json_option
def alter(
    topic: str,
    partitions: int | None,
    settings: Sequence[str],
    deleted: Sequence[str],
    asked: Asked,
    as_json: bool,
) -> None:
    """Add partitions, change settings."""
    config = settings_from("--config", settings)
    if partitions is None and not config and not deleted:
        raise BadInput("nothing to alter", hint="name --partitions, --config or --delete-config")
    with connected(asked) as connection:
        from holdfast.cluster.admin import topics as admin

        admin.known(connection, [topic])
        if config or deleted:  # the cluster checks these before it changes anything
            admin.alter_config(connection, topic, config, deleted)
        if partitions is not None:
            admin.add_partitions(connection, topic, partitions)
    _done(topic, "altered", as_json=as_json)


@topics.command(epilog=CODES)
@topic_option(required=True, multiple=True)
@cluster_options
@json_option
def delete(topics: Sequence[str], asked: Asked, as_json: bool) -> None:
    """Delete topics and all their records."""
    with connected(asked) as connection:
        from holdfast.cluster.admin import topics as admin

        admin.delete_topics(connection, admin.known(connection, topics))
    _done(", ".join(topics), "deleted", as_json=as_json)


def _done(topic: str, words: str, *, as_json: bool) -> None:
    if as_json:
        show_json("holdfast-topic-change/1", {"topic": topic, "result": words})
    say(f"{topic}: {words}")
