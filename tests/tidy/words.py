"""Words that must not come back, what to say instead, and a search for them.

Kafka's word is the only word. A few places need one of these words, because they quote a command or
what the program prints. An allow list names them: file, then the exact text around the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.tidy.test_tidy import ROOT

Words = Mapping[str, str]
Allowed = Mapping[str, Sequence[str]]

VOCABULARY: Words = {
    r"reign(s|ed|ing)?": "leader epoch, controller epoch, coordinator shard",
    r"told|tells": "sent, received, returned, notified, reported",
    r"promis(e|es|ed|ing)": "acknowledge, acknowledged, guarantee",
    r"cut|cuts|cutting": "truncate (a log), disconnect (a link)",
    r"dice": "random generator",
    r"life|lives": "broker epoch, incarnation",
    r"story|stories": "scenario",
    r"whoever": "the client, the follower, the caller",
    r"anew": "again",
    r"of ours": "our, Holdfast's",
    r"at once": "immediately, at the same time",
    r"behind (it|them)": "after it",
    r"comes? to be": "is created",
    r"is had": "exists",
    r"agreed (store|state|set)": "coordination store, the state in it",
    r"peace": "quiescence",
    r"heal(s|ed|ing)?": "end the faults",
    r"news": "pending updates",
    r"bells?": "wake-up FIFO",
    r"beat|beats|beating": "heartbeat, step",
    r"chores?": "maintenance",
    r"office": "leadership",
}
"""A pattern, and what to say. A space also matches a line break."""

_PER = "batch|broker|connection|core|event|file|line|log|partition|process|record|replica|request"
_NO_NOUN = "(and|as|at|by|for|from|in|of|on|or|than|to|with)\\b"

ENGLISH: Words = {
    r"believes?|believed": "name the fact and who has it",
    r"hears?": "receives",
    r"mend(s|ed|ing)?": "repair, fix",
    rf"(one|(an?|one) (?!{_NO_NOUN})[a-z]+) an? ({_PER}|row|second|task|worker)": "one per record",
}
"""For pages that people read."""


def misused(globs: Sequence[str], words: Words, allowed: Allowed, root: Path = ROOT) -> list[str]:
    """One finding for each such word in these files, and for each allowance that nothing needs."""
    pages = {str(path.relative_to(root)): path for glob in globs for path in root.glob(glob)}
    findings = [f"{glob}: no such file" for glob in globs if not any(root.glob(glob))]
    findings += [f"{name}: allowed, but not searched" for name in allowed if name not in pages]
    for name, path in sorted(pages.items()):
        text = path.read_text(encoding="utf-8")
        for place in allowed.get(name, ()):
            if place not in text:
                findings.append(f"{name}: '{place}' is gone; remove it from the allow list")
            text = text.replace(place, re.sub(r"[^\n]", " ", place))
        findings += [f"{name}:{finding}" for finding in _in_text(text, words)]
    return findings


def _in_text(text: str, words: Words) -> Iterator[str]:
    for word, instead in words.items():
        pattern = rf"(?<![a-z])({word})(?![a-z])".replace(" ", r"\s+")
        for found in re.finditer(pattern, text, re.IGNORECASE):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{line}: '{' '.join(found[0].split())}'; say {instead}"
