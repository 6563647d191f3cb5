"""The search: every way to lose a record, up to a bound, in the real core."""

from holdfast.lab.search.bounds import ANY, Bounds, bound_meaning, bound_names
from holdfast.lab.search.explore import HOLDS, LIMIT, VIOLATED, Coverage, Found, explore
from holdfast.lab.search.ladder import ladder
from holdfast.lab.search.question import Question
from holdfast.lab.search.seeds import SeedsFound, search_seeds
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
    "SeedsFound",
    "Story",
    "bound_meaning",
    "bound_names",
    "explore",
    "ladder",
    "search_seeds",
    "story_of",
]
