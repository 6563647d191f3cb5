from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from holdfast.lab.render.frames import fold
from holdfast.model.trace import TraceEvent
from holdfast.web import layout_of, svg
from tests.unit.lab.traces import (
    TraceBuilder,
    divergence_unclean,
    loss_restart_truncation,
    one_of_every_kind,
)

NAMESPACE = "{http://www.w3.org/2000/svg}"


def words(picture: str) -> str:
    root = ET.fromstring(picture)
    return " ".join(text.text or "" for text in root.iter(f"{NAMESPACE}text"))


@pytest.mark.parametrize(
    "events", [divergence_unclean(), loss_restart_truncation(), one_of_every_kind()]
)
def test_every_picture_is_well_formed_and_of_one_size(events: list[TraceEvent]) -> None:
    frames = fold(events)
    layout = layout_of(frames)
    roots = [ET.fromstring(svg(frame, layout)) for frame in frames]
    assert len({root.get("width") for root in roots}) == 1


def test_a_picture_says_in_words_what_its_colours_say() -> None:
    text = words(svg(fold(divergence_unclean())[-1]))
    for part in ("LEADER e2", "in sync", "HW 1", "LEO 2", "m2", "e2", "✖ m1", "LOST", "on disk"):
        assert part in text


def test_a_picture_needs_nothing_else() -> None:
    picture = svg(fold(loss_restart_truncation())[-1])
    assert "<script" not in picture
    assert "var(" not in picture
    assert picture.count("http") == 1, "only the name of the format itself"


def test_names_and_labels_are_escaped() -> None:
    trace = TraceBuilder()
    trace.begin("AB")
    trace.produce(1, "<m&0>", 0, 1)
    picture = svg(fold(trace.events)[-1])
    ET.fromstring(picture)
    assert "<m&0>" not in picture


def test_a_long_log_shows_its_newest_records() -> None:
    trace = TraceBuilder()
    trace.begin("AB")
    trace.append(1, 0, 1, *(f"m{number}" for number in range(100)), as_leader=True)
    frames = fold(trace.events)
    assert layout_of(frames).columns == 30
    text = words(svg(frames[-1]))
    assert "m99" in text
    assert "m10 " not in text
