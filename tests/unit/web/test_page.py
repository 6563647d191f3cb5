from __future__ import annotations

import json
import re
from html import escape

from holdfast.lab.render.frames import fold
from holdfast.web import html_page, html_tabs
from tests.unit.lab.traces import TraceBuilder, divergence_unclean, loss_restart_truncation


def data_of(page: str) -> list[dict[str, object]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    scenarios = json.loads(found.group(1))
    assert isinstance(scenarios, list)
    return scenarios


def test_the_page_needs_nothing_from_outside() -> None:
    page = html_page(fold(loss_restart_truncation()), "Loss")
    links = re.findall(r"""(?:src|href)\s*=|@import|url\(|https?://[^"\s]*""", page)
    assert links == ["http://www.w3.org/2000/svg"]
    assert "<!--" not in page
    assert "/*LIGHT*/" not in page


def test_a_label_cannot_break_out_of_the_page() -> None:
    trace = TraceBuilder()
    trace.begin()
    evil = "</script><script>alert(1)</script><!--TITLE-->"
    trace.say(evil)
    trace.produce(1, evil, 0, 1)
    page = html_page(fold(trace.events), "<b>Title</b>")
    assert page.count("</script>") == 2
    assert "<b>Title" not in page
    (one,) = data_of(page)
    assert isinstance(one["texts"], list)
    assert evil in one["texts"]


def test_every_frame_is_in_the_page_and_every_part_only_once() -> None:
    frames = fold(loss_restart_truncation())
    (scenario,) = data_of(html_page(frames, "Loss"))
    assert isinstance(scenario["frames"], list)
    assert len(scenario["frames"]) == len(frames)
    for shape in ("wide", "narrow"):
        drawn = scenario[shape]
        assert isinstance(drawn, dict)
        assert len(drawn["parts"]) == len(frames)
        assert len(set(drawn["pieces"])) == len(drawn["pieces"]) < 4 * len(frames)


def test_the_page_opens_on_logs_that_hold_records_and_not_on_the_end() -> None:
    frames = fold(loss_restart_truncation())
    (scenario,) = data_of(html_page(frames, "Loss"))
    opens = scenario["opens"]
    assert isinstance(opens, int)
    assert any(view.cells for view in frames[opens].snapshot.replicas)
    assert opens < len(frames) - 1


def test_a_reader_without_javascript_gets_every_sentence() -> None:
    frames = fold(loss_restart_truncation())
    page = html_page(frames, "Loss")
    words = page[page.index("<noscript>") : page.index("</noscript>")]
    for frame in frames:
        assert f"<li>{escape(frame.sentence)}</li>" in words


def test_scenarios_are_tabs_that_show_their_outcome() -> None:
    page = html_tabs(
        [("before", fold(loss_restart_truncation())), ("after", fold(divergence_unclean()))], "Both"
    )
    assert [(scenario["name"], scenario["sign"]) for scenario in data_of(page)] == [
        ("before", "✖"),
        ("after", ""),
    ]


def test_two_hundred_frames_fit_in_two_megabytes() -> None:
    trace = TraceBuilder()
    trace.begin("ABCDE")
    for offset in range(40):
        trace.produce(1, f"m{offset}", offset, 1)
        for follower in (2, 3, 4):
            trace.append(follower, offset, 1, f"m{offset}")
    page = html_page(fold(trace.events), "Large")
    assert len(fold(trace.events)) > 200
    assert len(page.encode()) < 2_000_000
