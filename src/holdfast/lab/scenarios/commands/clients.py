"""Commands for producers and consumers."""

from __future__ import annotations

import re

from holdfast.lab.scenarios.commands.registry import CommandError, Stage, command, need, number
from holdfast.lab.scenarios.scenario import Command
from holdfast.model import Offset

MOST_RECORDS = 10_000
_RANGE = re.compile(r"^(\D*)(\d+)\.\.(\D*)(\d+)$")


@command("producer NAME [acks=A] [idempotence=on] [retries=N] [looks=off]")
def producer(stage: Stage, given: Command) -> None:
    """Create a producer with these settings."""
    (name,) = need(given.words, 1, "producer NAME [key=value …]")
    one = stage.producer(name)
    options = dict(given.options)
    one.acks = stage.option("acks", options.pop("acks", "all"))
    one.retries = stage.option("retries", options.pop("retries", "0"))
    one.idempotent = stage.option("idempotence", options.pop("idempotence", "off"))
    one.producer_id = len(stage.world.clients) if one.idempotent else -1
    one.ignores_answers = not stage.option("looks", options.pop("looks", "on"))
    _no_more(options)


@command("produce BROKER|PRODUCER [to=BROKER] [acks=A] [together=yes]")
def produce(stage: Stage, given: Command) -> None:
    """Send the records below: one batch each, or all together."""
    (name,) = need(given.words, 1, "produce BROKER|PRODUCER [to=BROKER] [acks=A]")
    world = stage.world
    options = dict(given.options)
    if name in world.brokers:
        client, to = stage.producer("producer"), name
    else:
        client, to = stage.producer(name), options.pop("to", "")
        if to:
            stage.broker(to)
    acks = stage.option("acks", options.pop("acks", None))
    if acks is not None:
        client.acks = acks
    together = options.pop("together", "no")
    if together not in ("yes", "no"):
        raise CommandError(f"together={together}?", "together=yes (one batch) or together=no")
    _no_more(options)
    labels = [label for line in given.data for label in _labels(line)]
    if not labels:
        raise CommandError("no records", "write their labels indented below, e.g. '  m0'")
    client.send(labels, to=to, together=together == "yes")


def _labels(line: str) -> list[str]:
    labels: list[str] = []
    for word in line.split():
        found = _RANGE.match(word)
        if found:
            prefix, first, same, last = found.groups()
            low, high = (
                number(first, "a place", MOST_RECORDS),
                number(last, "a place", MOST_RECORDS),
            )
            if same not in ("", prefix) or low > high:
                raise CommandError(f"{word!r} is no range", "write 'm0..m9'")
            labels.extend(f"{prefix}{place}" for place in range(low, high + 1))
        else:
            labels.append(word)
    return labels


def _no_more(options: dict[str, str]) -> None:
    for key in options:
        raise CommandError(f"{key!r} does not go with the other words")


@command("retry PRODUCER")
def retry(stage: Stage, given: Command) -> None:
    """A producer retries its unanswered batches."""
    (name,) = need(given.words, 1)
    stage.producer(name).retry()


@command("resend PRODUCER")
def resend(stage: Stage, given: Command) -> None:
    """An application that checks its errors sends the refused records again."""
    (name,) = need(given.words, 1)
    one = stage.producer(name)
    if one.idempotent:
        raise CommandError(f"{name} is idempotent", "it retries by itself: write 'retries=1'")
    one.resend()


@command("consumer NAME [commit=auto|manual] [sink=plain|idempotent]")
def consumer(stage: Stage, given: Command) -> None:
    """Create a consumer with these settings."""
    (name,) = need(given.words, 1)
    options = dict(given.options)
    one = stage.consumer(name)
    one.auto_commit = stage.option("commit", options.pop("commit", "manual")) == "auto"
    one.idempotent_sink = stage.option("sink", options.pop("sink", "plain")) == "idempotent"
    _no_more(options)


@command("consume CONSUMER [from=BROKER]")
def consume(stage: Stage, given: Command) -> None:
    """A consumer polls once: the leader, or the named broker."""
    (name,) = need(given.words, 1)
    options = dict(given.options)
    source = options.pop("from", "")
    if source:
        stage.broker(source)
    _no_more(options)
    one = stage.consumer(name)
    one.poll(source)
    stage.world.pump()
    if one.found_nothing:
        stage.said.append(f"{name} finds nothing offset={one.position}")


@command("seek CONSUMER OFFSET")
def seek(stage: Stage, given: Command) -> None:
    """A consumer moves to another offset."""
    name, offset = need(given.words, 2)
    stage.consumer(name).seek(Offset(number(offset, "the offset")))


@command("work CONSUMER [COUNT]")
def work(stage: Stage, given: Command) -> None:
    """A consumer processes the records it has read: all of them, or the first COUNT."""
    if not 1 <= len(given.words) <= 2:
        raise CommandError("which consumer?")
    one = stage.consumer(given.words[0])
    count = number(given.words[1], "the count") if len(given.words) > 1 else len(one.buffer)
    one.work(count)


@command("commit CONSUMER")
def commit(stage: Stage, given: Command) -> None:
    """A consumer commits its position; with automatic commits it did so when it read."""
    (name,) = need(given.words, 1)
    one = stage.consumer(name)
    if not one.auto_commit:
        one.commit()
