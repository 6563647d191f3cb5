"""The rules of the audit against a slow, obvious one, on random worlds of real log files."""

import tempfile
from pathlib import Path

from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.pipeline.audit_reference import Content, Copy, Findings, Line, Send, World, audit
from tests.pipeline.audit_world import findings_of, run_world


def content(number: int) -> Content:
    """Few contents, so that they collide; some without a key, and one without a value."""
    key = None if number % 3 == 0 else b"k%d" % (number % 2)
    return key, None if number == 4 else b"v%d" % number


@st.composite
def copied(draw: DrawFn, line: Line) -> list[Copy]:
    made = []
    for name in ("b1", "b2", "b3")[: draw(st.integers(1, 3))]:
        mine = dict(line)
        for _ in range(draw(st.integers(0, 2))):
            gone: int = draw(st.integers(0, 10))
            mine.pop(gone, None)
        if draw(st.booleans()) and line:
            offset = draw(st.sampled_from(sorted(line)))
            mine[offset] = (line[offset][0], content(draw(st.integers(0, 9))))
        if draw(st.integers(0, 1)):
            end = draw(st.integers(0, len(line)))
            mine = {offset: one for offset, one in mine.items() if offset < end}
            epoch = max((one[0] for one in mine.values()), default=0)
            for offset in range(end, end + draw(st.integers(0, 2))):
                mine[offset] = (epoch, content(draw(st.integers(0, 9))))
        start = draw(st.sampled_from([0, 0, 0, 2]))
        mine = {offset: one for offset, one in mine.items() if offset >= start}
        mark = draw(st.integers(0, len(line)))
        made.append(Copy(name, mine, high_watermark=mark, start=start))
    return made


@st.composite
def worlds(draw: DrawFn) -> World:
    size = draw(st.integers(0, 10))
    borders = sorted(draw(st.lists(st.integers(0, 10), max_size=2)))
    number = st.integers(0, 40)
    line = {
        offset: (sum(offset >= border for border in borders), content(draw(number)))
        for offset in range(size)
    }
    sends = []
    for offset in draw(st.permutations(range(size + 2))):
        if draw(st.integers(0, 5)):
            what = line[offset][1] if offset in line else content(draw(number))
            if draw(st.integers(0, 9)) == 0:
                what = content(draw(number))
            sends.append((what, "acked", offset))
    if draw(st.booleans()):
        sends.sort(key=lambda one: one[2])
    for _ in range(draw(st.integers(0, 3))):
        result = draw(st.sampled_from(["unknown", "refused", "acked"]))
        sends.append((content(draw(number)), result, -1))
    rows = [
        Send(
            draw(st.integers(0, 1)),
            nth,
            what,
            result,
            offset,
            draw(st.sampled_from([0, 0, -1])) if offset < 0 and result != "acked" else 0,
        )
        for nth, (what, result, offset) in enumerate(sends)
    ]
    return World(
        copies=draw(copied(line)),
        sends=rows,
        table=draw(st.none() | readings(line)),
        polls=[(draw(st.integers(0, 1)), offset, what) for offset, what in draw(readings(line))]
        if draw(st.booleans())
        else None,
        min_insync=draw(st.integers(1, 3)),
    )


@st.composite
def readings(draw: DrawFn, line: Line) -> list[tuple[int, Content]]:
    rows = [(offset, what) for offset, (_, what) in line.items()]
    rows = [one for one in rows if draw(st.integers(0, 5))]
    rows = rows[: draw(st.integers(0, len(rows) + 3))]
    for _ in range(draw(st.integers(0, 2))):
        rows.append((draw(st.integers(0, 12)), content(draw(st.integers(0, 60)))))
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    return rows


@settings(deadline=None, max_examples=200)
@given(world=worlds(), span=st.sampled_from([2, 3, 5, 100]))
def test_every_world_is_judged_as_by_the_slow_audit(world: World, span: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        got = findings_of(run_world(world, Path(folder), span))
    expected: Findings = audit(world)
    note(f"too many: {got - expected}, too few: {expected - got}")
    assert got == expected
