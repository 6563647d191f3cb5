"""What is known of a partition apart from its logs: its topic's ids, and its elections.

It comes from KRaft's metadata log, if a directory has one, and from folders that have the
partition's name and belong to a deleted topic.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from holdfast.lab.render.wording import spoken_list
from holdfast.pipeline.audit.causes import kinds
from holdfast.pipeline.audit.causes.case import Asked, Names
from holdfast.pipeline.audit.causes.from_traces import Reason
from holdfast.pipeline.audit.controllers.kraft_metadata import Election, TopicIncarnation
from holdfast.pipeline.audit.replicas.truth import Stranger
from holdfast.storage.checkpoints.meta_properties import id_text


class Past(NamedTuple):
    """The history of one partition."""

    topic_id: bytes | None = None
    """The id of the topic that has the name now."""
    incarnations: tuple[TopicIncarnation, ...] = ()
    """All topics that had the name, oldest first; empty without controllers' records."""
    elections: tuple[Election, ...] = ()
    """Oldest first."""
    is_whole: bool = True
    """The elections are complete, not only the unclean ones."""
    strangers: tuple[Stranger, ...] = ()
    """Logs of an earlier topic with the same name."""
    began_ms: int | None = None
    """The time of the log's first record, if the log still has it."""

    def epoch_when(self, time_ms: int | None) -> int | None:
        """The leader epoch at a time; None if unknown."""
        if time_ms is None or not self.is_whole:
            return None
        begun = [one.leader_epoch for one in self.elections if one.time_ms <= time_ms]
        return begun[-1] if begun else None

    def between(self, wrote: int, later: int) -> list[Election]:
        """The elections after one epoch, up to another. Not every epoch writes to a log."""
        return [
            one for one in self.elections if wrote < one.leader_epoch <= later and one.leader >= 0
        ]

    def unclean_after(self, time_ms: int | None) -> list[Election]:
        """The unclean elections after a time."""
        if time_ms is None:
            return []
        return [one for one in self.elections if one.is_unclean and one.time_ms > time_ms]


NO_PAST = Past()


def recreated(asked: Asked, past: Past) -> Reason | None:
    """The topic that acknowledged the records was deleted since; None if not."""
    if asked.acked_ms is None:
        return None
    is_dated = bool(past.incarnations) and past.incarnations[-1].created_ms is not None
    explanation = _by_controllers(asked, past) if is_dated else _by_files(asked, past)
    if explanation is None:
        return None
    sentence, evidence = explanation
    left = _of_another_topic(past)
    if left:
        brokers = sorted({one.broker for one in left})
        verb = "has" if len(brokers) == 1 else "have"
        sentence += f" {spoken_list(brokers)} still {verb} a log of the deleted topic."
    return Reason(
        kind=kinds.RECREATED,
        sentence=sentence,
        acks=asked.acks,
        evidence=(*evidence, *(one.path for one in left)),
    )


def _of_another_topic(past: Past) -> list[Stranger]:
    return [one for one in past.strangers if one.topic_id not in (None, past.topic_id)]


def _by_controllers(asked: Asked, past: Past) -> tuple[str, tuple[str, ...]] | None:
    now = past.incarnations[-1]
    assert asked.acked_ms is not None
    if now.removed_ms is not None or now.created_ms is None or now.created_ms <= asked.acked_ms:
        return None
    former = [one for one in past.incarnations[:-1] if one.removed_ms is not None][-1:]
    if not former and not _of_another_topic(past):
        return None  # The producer's clock may be behind the controller's.
    gone = [
        f"the one with the id {spoken_id(one.topic_id)} was deleted at "
        f"{spoken_time(one.removed_ms)}, and "
        for one in former
        if one.removed_ms is not None
    ]
    sentence = (
        f"The topic was deleted and created again: {''.join(gone)}the one with the id "
        f"{spoken_id(now.topic_id)} was created at {spoken_time(now.created_ms)}, after "
        f"{asked.what} had been acknowledged."
    )
    return sentence, tuple(one.evidence for one in (*former, now))


def _by_files(asked: Asked, past: Past) -> tuple[str, tuple[str, ...]] | None:
    """A log with another id exists, and the present one begins after the acknowledgement."""
    others = _of_another_topic(past)
    if not others or past.topic_id is None or past.began_ms is None:
        return None
    assert asked.acked_ms is not None
    if past.began_ms <= asked.acked_ms or others[0].topic_id is None:
        return None
    sentence = (
        f"The topic was deleted and created again: {asked.what} had been acknowledged before the "
        f"first record of the log with the id {spoken_id(past.topic_id)} was written, and a log "
        f"with the id {spoken_id(others[0].topic_id)} is there, too."
    )
    return sentence, ()


def spoken_id(topic_id: bytes) -> str:
    return id_text(UUID(bytes=topic_id))


def spoken_time(time_ms: int) -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time_ms / 1000))
    return f"{moment}.{time_ms % 1000:03} UTC"


def named(brokers: Sequence[int], names: Names) -> str:
    return spoken_list([names.get(one, f"broker {one}") for one in brokers]) or "nobody"
