from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from holdfast.pipeline.audit import (
    Audit,
    Cause,
    Finding,
    LedgerRow,
    PartitionFacts,
    Remedy,
    ReplicaFacts,
    TimelinePoint,
    Verdict,
)
from holdfast.pipeline.audit.findings.findings import DUPLICATE, LOST, EpochStart, Exit, Step
from holdfast.web import acked_chart, log_lanes
from holdfast.web.acked_chart import bars_of, chart
from holdfast.web.audit_page import MOST_CHAPTERS, headline, page
from holdfast.web.audit_tables import MOST_FINDINGS
from holdfast.web.cause_chapters import chapters
from holdfast.web.log_lanes import window_of

EVIL = "</title><script>alert(1)</script>\"'&<!--BODY-->"
ROW = LedgerRow(
    run="r", producer="p", sequence=7, result="acked", acks="1", idempotent=False, sent_ms=1
)
STEP = Step(
    time_ms=1_794_753_497_786, kind="truncated", broker="east", offset=3, sentence="east truncates."
)
CAUSE = Cause(event_id=57, kind="unclean-election", sentence="It was unclean.", chain=(STEP,))
CLEAN = Remedy(setting="unclean.leader.election.enable", value="false")
LOSS = Finding(
    kind=LOST,
    topic="events",
    partition=0,
    offset=3,
    last_offset=4,
    count=2,
    ledger=ROW,
    has=("west",),
    lacks=("east",),
    cause=CAUSE,
    remedy=CLEAN,
    evidence=("traces/broker-2.trace:58",),
)


def replica(broker: str, end: int, *epochs: tuple[int, int]) -> ReplicaFacts:
    starts = tuple(EpochStart(epoch=one, start_offset=start) for one, start in epochs)
    return ReplicaFacts(
        broker=broker,
        path=f"logs/{broker}/events-0",
        log_start_offset=0,
        log_end_offset=end,
        high_watermark=end,
        flushed=2,
        epochs=starts,
    )


FACTS = PartitionFacts(
    topic="events",
    partition=0,
    leader="east",
    replicas=(replica("west", 5, (0, 0)), replica("east", 8, (0, 0), (2, 3))),
    acked=10,
    found=8,
    lost=2,
)
AUDIT = Audit(
    verdict=Verdict(sent=12, acked=10, in_truth=8, counts={LOST: 2}, exit_code=Exit.LOSS),
    findings=(LOSS,),
    left_out=0,
    partitions=(FACTS,),
    timeline=(TimelinePoint(topic="events", partition=0, second=100, acked=10, found=8),),
    faults=(),
    missing=(),
    inputs={"--ledger": "ledger"},
)


class Balance(HTMLParser):
    """Fails on a tag that is closed without being open."""

    VOID = ("meta", "br", "rect", "line", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def parsed(text: str) -> Balance:
    balance = Balance()
    balance.feed(text)
    balance.close()
    assert not balance.open
    return balance


def pictures(text: str) -> list[ET.Element]:
    return [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def words_of(picture: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in picture.iter() if one.tag.endswith("text")]


def test_the_page_needs_nothing_from_outside() -> None:
    text = page(AUDIT)
    found = re.findall(r"""(?:src|href)\s*=|@import|url\(|https?://[^"\s]*|<script""", text)
    assert set(found) == {"http://www.w3.org/2000/svg"}
    assert "<!--" not in text
    assert "/*LIGHT*/" not in text


def test_the_page_is_well_formed_and_says_the_verdict_the_cause_and_the_remedy() -> None:
    text = page(AUDIT)
    parsed(text)
    assert "2 acknowledged records are lost." in text
    assert "It was unclean." in text
    assert "unclean.leader.election.enable=false" in text
    assert "traces/broker-2.trace:58" in text
    assert "offsets 3 to 4" in text


@pytest.mark.parametrize("exit_code", list(Exit))
def test_every_verdict_has_its_words(exit_code: Exit) -> None:
    verdict = replace(AUDIT.verdict, exit_code=exit_code)
    audit = replace(AUDIT, verdict=verdict, missing=("the log of west",))
    assert headline(audit) in page(audit)
    assert ("lost" in headline(audit)) == (exit_code is not Exit.UNDECIDED)
    assert headline(audit).startswith("2 ack") == (exit_code is Exit.LOSS)
    assert "the log of west" in page(audit)


def test_nothing_from_outside_can_break_out_of_the_page() -> None:
    evil_replica = replace(FACTS.replicas[0], broker=EVIL, path=EVIL, errors=(EVIL,))
    finding = replace(
        LOSS,
        topic=EVIL,
        has=(EVIL,),
        lacks=(EVIL,),
        detail=EVIL,
        ledger=replace(ROW, acks=EVIL),
        evidence=(EVIL,),
        cause=replace(
            CAUSE,
            kind=EVIL,
            sentence=EVIL,
            chain=(replace(STEP, sentence=EVIL, broker=EVIL),),
        ),
        remedy=Remedy(setting=EVIL, value=EVIL),
    )
    audit = replace(
        AUDIT,
        verdict=replace(AUDIT.verdict, found={EVIL: 1}),
        findings=(finding,),
        partitions=(replace(FACTS, topic=EVIL, replicas=(evil_replica,)),),
        missing=(EVIL,),
        inputs={EVIL: EVIL},
    )
    text = page(audit)
    balance = parsed(text)
    assert "script" not in balance.seen
    assert balance.seen.count("body") == 1
    for picture in pictures(text):
        assert {one.tag.rpartition("}")[2] for one in picture.iter()} <= {
            *("svg", "g", "title", "text", "rect", "line", "path"),
        }


def test_a_page_of_very_many_findings_stays_small_and_says_how_many_more() -> None:
    findings = tuple(
        replace(
            LOSS,
            offset=10 * place,
            last_offset=10 * place + 1,
            cause=replace(CAUSE, event_id=place, chain=(STEP,) * 14),
            evidence=(f"trace:{place}",) * 50,
            detail="x" * 200,
        )
        for place in range(1000)
    )
    partitions = tuple(replace(FACTS, partition=place) for place in range(1000))
    points = tuple(
        TimelinePoint(topic="events", partition=0, second=place, acked=5, found=5)
        for place in range(50_000)
    )
    text = page(
        replace(AUDIT, findings=findings, partitions=partitions, timeline=points, left_out=9000)
    )
    assert len(text.encode()) < 1_000_000
    assert f"And {1000 - MOST_FINDINGS + 9000:,} more findings." in text
    assert f"And {1000 - MOST_CHAPTERS:,} more causes" in text


def test_findings_of_one_event_are_one_chapter() -> None:
    other = replace(LOSS, offset=9, last_offset=9, count=1)
    elsewhere = replace(LOSS, partition=1)
    later = replace(LOSS, cause=replace(CAUSE, event_id=58))
    unexplained = replace(LOSS, cause=None)
    first, second, third = chapters([LOSS, other, elsewhere, later, unexplained])
    assert (first.records, first.span) == (3, (3, 10))
    assert (second.partition, second.records) == (1, 2)
    assert third.findings == (later,)


def test_lanes_show_every_copy_with_its_epochs_and_what_it_lacks() -> None:
    _, _, *both = pictures(page(AUDIT))
    for words in map(words_of, both):
        assert words.count("has the records") == 1
        assert words.count("has other records") == 1
        assert words.count("e2") == 5, "offsets 3 to 7 of the one log"
        assert "✂ truncated its log to 3" in words
        assert "end 8" in words


def test_a_narrow_screen_gets_pictures_of_its_own() -> None:
    widths = [float(one.get("viewBox", "").split()[2]) for one in pictures(page(AUDIT))]
    wide = [acked_chart.WIDE.width, log_lanes.WIDE.width]
    narrow = [acked_chart.NARROW.width, log_lanes.NARROW.width]
    assert widths == [wide[0], narrow[0], wide[1], narrow[1]]


def test_a_loss_of_millions_is_drawn_as_bars() -> None:
    facts = replace(FACTS, replicas=(replica("east", 4_000_000, (0, 0), (3, 1_000_000)),))
    finding = replace(LOSS, offset=1_000_000, last_offset=2_999_999, count=2_000_000)
    text = page(replace(AUDIT, findings=(finding,), partitions=(facts,)))
    for picture in pictures(text)[2:]:
        assert "epoch 3" in words_of(picture)
        assert len(ET.tostring(picture)) < 10_000


@pytest.mark.parametrize("end", [3, 4, 8, 100, 10**12])
def test_the_window_shows_the_loss_whole_and_what_is_near(end: int) -> None:
    window = window_of([replica("east", end, (0, 0), (2, 3))], 3, 5)
    assert 0 <= window.start <= 3
    assert 5 <= window.end <= log_lanes.WIDE.most_cells
    assert window.x(-5) == window.x(window.start) < window.x(3) < window.x(5)
    assert window.x(10**15) == window.x(window.end)


def test_the_bars_add_up_and_are_never_too_many() -> None:
    points = [
        TimelinePoint(topic="t", partition=place % 3, second=1000 + place, acked=2, found=1)
        for place in range(1001)
    ]
    bars = bars_of(points, 120)
    assert len(bars) <= 120
    assert (sum(bar.acked for bar in bars), sum(bar.missing for bar in bars)) == (2002, 1001)
    assert bars_of([], 120) == []
    assert chart([], []) == ""


def test_a_clean_report_shows_the_faults_that_were_survived() -> None:
    fault = replace(STEP, time_ms=100_500, kind="power-lost", sentence="the power of east failed")
    clean = replace(AUDIT.verdict, counts={}, in_truth=10, exit_code=Exit.GOOD)
    wide, narrow = pictures(page(replace(AUDIT, verdict=clean, findings=(), faults=(fault,))))
    for picture in (wide, narrow):
        assert "⚡" in words_of(picture)
        assert "the power of east failed" in ET.tostring(picture, encoding="unicode")


def test_one_missing_record_among_a_million_is_seen() -> None:
    point = TimelinePoint(topic="t", partition=0, second=5, acked=1_000_000, found=999_999)
    picture = ET.fromstring(chart([point], []))
    [red, _under_the_axis] = [one for one in picture.iter() if one.get("class") == "missing"]
    assert float(red.get("height", 0)) >= 3


def test_times_out_of_range_are_shown_as_numbers() -> None:
    points = [TimelinePoint(topic="t", partition=0, second=10**17, acked=1, found=1)]
    cause = replace(CAUSE, chain=(replace(STEP, time_ms=10**20),))
    text = page(replace(AUDIT, findings=(replace(LOSS, cause=cause),), timeline=tuple(points)))
    assert "1e+17 s" in text


def test_a_duplicate_has_no_lanes_and_a_send_without_offset_no_place() -> None:
    twice = replace(LOSS, kind=DUPLICATE)
    nowhere = replace(LOSS, offset=None, last_offset=None)
    assert len(pictures(page(replace(AUDIT, findings=(twice, nowhere))))) == 2, "the chart alone"
