"""The last minutes of a partition's trace in the stepper.

A busy partition has thousands of events in a minute. The page gets every event that changes who
leads, who is in sync or who is alive, and of the routine ones between them as many as it can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.cluster.errors import ClusterError
from holdfast.lab.render.frames import Frame, fold
from holdfast.web.console.live_lanes import ROUTINE
from holdfast.web.console.reading.observation import PartitionFacts
from holdfast.web.console.watcher import Watcher
from holdfast.web.stepper_page import html_page

MOST_EVENTS: Final = 6_000
MOST_FRAMES: Final = 400


def replay_page(watcher: Watcher, partition: PartitionFacts, minutes: float) -> str:
    """A page that opens at the newest event. ClusterError if there is no trace."""
    if watcher.ring is None:
        raise ClusterError("there is no trace to replay")
    with watcher.replay_lock():
        trace, before = watcher.ring.replay(partition.name, minutes, MOST_EVENTS)
    opening = {event.id for event in trace[:before]}
    frames = fold(trace, partition.name)
    recent = [one for one in frames if one.event not in opening]
    return html_page(thinned(recent or frames[-1:], MOST_FRAMES), partition.name, at_end=True)


def thinned(frames: Sequence[Frame], most: int) -> list[Frame]:
    """At most so many frames, the newest one among them."""
    if len(frames) <= most:
        return list(frames)
    special = [place for place, one in enumerate(frames) if one.kind not in ROUTINE][-most // 2 :]
    routine = [place for place, one in enumerate(frames[:-1]) if one.kind in ROUTINE]
    room = most - len(special) - 1
    spread = [routine[number * len(routine) // room] for number in range(room)]
    return [frames[place] for place in sorted({*special, *spread, len(frames) - 1})]
