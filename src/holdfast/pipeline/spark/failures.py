"""Turns every failure of Spark into one readable cause; the stack traces stay in the log.

Spark wraps: a query's failure holds a job's, that holds a task's, that holds the real error. The
innermost cause with a text is reported, unless a better explanation is known.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.pipeline.errors import PipelineError
from holdfast.pipeline.spark.scratch import keep_log, log_file

DEEPEST: Final = 20
"""Longest chain of causes; a longer one is circular."""
LONGEST: Final = 400
STACK: Final = re.compile(r"\n\s+at |\n\nJVM stacktrace")
IN_A_TASK: Final = re.compile(r"Lost task [^\n]*?\): (?:[\w.$]+: )?([^\n]+)")


GONE: Final = ("Py4JNetworkError", "PySparkRuntimeError")
ENDING: Final = re.compile(r"Shutdown in progress|SparkContext was shut down|stopped SparkContext")
"""Messages of a Java that is ending."""
JAVA_S: Final = 30.0
"""How long Java may take to end."""
START_AGAIN: Final = "start it again, it continues where it was"


class StreamFailedError(PipelineError):
    """Spark could not go on with what it had begun."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One link of the chain."""

    kind: str
    """Java's class, without its package."""
    text: str
    condition: str | None = None
    """Spark's own name of the condition, such as KAFKA_DATA_LOSS.START_OFFSET_RESET."""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    pattern: re.Pattern[str]
    sentence: str
    hint: str


KNOWN: Final = (
    Known(
        re.compile("CONCURRENT_STREAM_LOG_UPDATE|Concurrent update to the (commit )?log"),
        "another ingest writes to the same table",
        "let one of them run; this one wrote nothing twice",
    ),
    Known(
        re.compile("OutOfMemoryError|Java heap space"),
        "Spark ran out of memory",
        "give it more: --conf spark.driver.memory=4g (on a cluster also spark.executor.memory)",
    ),
    Known(
        re.compile("No space left on device"),
        "a disk is full",
        "make room where the table is, or move Spark's own files: --conf spark.local.dir=DIR",
    ),
    Known(
        re.compile("Could not parse Master URL|All masters are unresponsive"),
        "Spark's master cannot be reached",
        "look at --master: local[*], spark://HOST:PORT, yarn or k8s://…",
    ),
    Known(
        re.compile("UnknownTopicOrPartitionException|UnknownTopicIdException"),
        "a topic is no longer there",
        "was it deleted?",
    ),
    Known(
        re.compile("TimeoutException.*(node assignment|DescribeCluster|listOffsets|metadata)"),
        "the brokers did not answer in time",
        "are they running? 'holdfast status' shows it; then start again, nothing is lost",
    ),
)


def causes(error: BaseException) -> list[Cause]:
    """From the outermost to the innermost."""
    return list(_java_causes(error)) or [Cause(type(error).__name__, _own_words(str(error)))]


def readable_failure(error: BaseException, what: str) -> StreamFailedError:
    """`what` names the failed action in a few words."""
    chain = causes(error)
    hint = f"Spark's log: {keep_log()}"
    whole = "\n".join(f"{cause.kind}: {cause.condition} {cause.text}" for cause in chain)
    for known in KNOWN:
        if known.pattern.search(whole):
            return StreamFailedError(f"{what}: {known.sentence}", hint=f"{known.hint}; {hint}")
    is_gone = isinstance(error, ConnectionError) or chain[-1].kind in GONE
    ending = how_java_ended(JAVA_S if is_gone or ENDING.search(whole) else 0.0)
    if ending is not None:
        return StreamFailedError(f"{what}: {ending}", hint=f"{START_AGAIN}; {hint}")
    if is_gone:
        return StreamFailedError(f"{what}: Java ended, {_last_words()}", hint=hint)
    with_text = [cause for cause in chain if cause.text] or chain
    return StreamFailedError(f"{what}: {_short(with_text[-1].text)}", hint=hint)


def how_java_ended(patience_s: float) -> str | None:
    """The signal or exit code; None while it runs, or if it was never started."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None
    number = -code if code < 0 else code - 128  # Java itself turns a signal into 128 and more
    try:
        return f"Java was ended by {signal.Signals(number).name}, {_last_words()}"
    except ValueError:
        return f"Java ended with exit code {code}, {_last_words()}"


def _java_causes(error: BaseException) -> Iterator[Cause]:
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(DEEPEST):
        if java is None:
            return
        condition, parameters = None, {}
        if "getMessageParameters" in dir(java):  # only Spark's own exceptions have it
            condition, parameters = java.getCondition(), dict(java.getMessageParameters() or {})
        kind = java.getClass().getSimpleName()
        yield Cause(kind, _own_words(java.getMessage() or ""), condition, parameters)
        java = java.getCause()


def _own_words(text: str) -> str:
    """Without stack traces: the last line of a Python one, the informative line of a task's."""
    if "Traceback (most recent call last)" in text:
        plain = [line for line in text.splitlines() if line and not line[0].isspace()]
        return plain[-1] if plain else text
    if in_a_task := IN_A_TASK.search(text):
        return in_a_task[1]
    return STACK.split(text, maxsplit=1)[0].strip()


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= LONGEST else f"{one_line[:LONGEST]}…"


def _last_words() -> str:
    lines = log_file().read_text(encoding="utf-8", errors="replace").splitlines()
    spoken = [line for line in lines if line.strip() and not line.startswith(("\t", "WARNING:"))]
    return f"and said last: {_short(spoken[-1])}" if spoken else "without a word"
