"""The topics of an ingest, and a check of them at the brokers before Spark starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from holdfast.cluster import Client, ClusterError
from holdfast.cluster.client.client import addresses
from holdfast.model import ErrorCode
from holdfast.pipeline.errors import NoBrokerError, PipelineError

NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Topics:
    """Names, or a pattern that also takes topics which appear later."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def parsed(cls, text: str) -> Topics:
        """Names with commas; a text with a character that no topic's name has is a pattern."""
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        if all(NAME.fullmatch(name) for name in names):
            return cls(names=names)
        try:
            re.compile(text)
        except re.error as error:
            raise PipelineError(
                f"{text!r} is neither topics with commas nor a regular expression: {error}"
            ) from None
        return cls(pattern=text)

    def __str__(self) -> str:
        return self.pattern if self.pattern is not None else ",".join(self.names)

    @property
    def option(self) -> tuple[str, str]:
        """The option of the connector."""
        return ("subscribe" if self.pattern is None else "subscribePattern"), str(self)

    def among(self, known: list[str]) -> list[str]:
        if self.pattern is None:
            return [name for name in known if name in self.names]
        return [name for name in known if re.fullmatch(self.pattern, name)]

    def hold_all_of(self, earlier: Topics) -> bool:
        """Whether everything that was read before is still included."""
        if self.pattern is None and earlier.pattern is None:
            return set(self.names) >= set(earlier.names)
        return self == earlier


def cluster_of(bootstrap: str, topics: Topics) -> str:
    """The cluster's id, after a check that brokers answer and the topics exist.

    Spark would find out too, after a minute and in many words.
    """
    try:
        known_addresses = addresses(bootstrap)
    except ClusterError as error:
        raise PipelineError(error.message, hint="such as -b 127.0.0.1:9092") from None
    try:
        with Client(known_addresses) as client:
            metadata = client.metadata()
    except ClusterError as error:
        raise NoBrokerError(
            f"the brokers cannot be asked: {error.message}", hint="is the address right (-b)?"
        ) from None
    known = [
        topic.name
        for topic in metadata.topics
        if topic.name is not None and topic.error_code == ErrorCode.NONE and not topic.is_internal
    ]
    found = topics.among(known)
    lacking = [name for name in topics.names if name not in found] or [str(topics)]
    if not found or len(found) < len(topics.names):
        near = get_close_matches(lacking[0], known, n=3)
        raise PipelineError(
            f"no topic {', '.join(lacking)} at {bootstrap}",
            hint=f"did you mean {' or '.join(near)}?" if near else "create it first",
        )
    return metadata.cluster_id or ""
