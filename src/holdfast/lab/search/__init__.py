"""The search: every way to lose a record, up to a bound, in the real core."""

from holdfast.lab.search.bounds import ANY, Bounds, bound_meaning, bound_names
from holdfast.lab.search.explore import HOLDS, LIMIT, VIOLATED, Coverage, Found, Question, explore
from holdfast.lab.search.ladder import ladder
from holdfast.lab.search.story import Story, story_of

__all__ = [
    "ANY",
    "HOLDS",
    "LIMIT",
    "VIOLATED",
    "Bounds",
    "Coverage",
    "Found",
    "Question",
    "Story",
    "bound_meaning",
    "bound_names",
    "explore",
    "ladder",
    "story_of",
]
