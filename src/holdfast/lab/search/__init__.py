"""The search: every way to lose a record, up to a bound, in the real core."""

from holdfast.lab.search.bounds import ANY, Bounds, bound_meaning, bound_names
from holdfast.lab.search.explore import HOLDS, LIMIT, VIOLATED, Coverage, Found, Watch, explore
from holdfast.lab.search.ladder import GUARDS, SWITCHES, WIDENING, Rung, ladder
from holdfast.lab.search.question import Question
from holdfast.lab.search.seeds import SeedsFound, search_runs, search_seeds, spread_seeds
from holdfast.lab.search.spreading import spread, spread_many
from holdfast.lab.search.story import Story, story_of
from holdfast.lab.search.symmetry import is_symmetric

__all__ = [
    "ANY",
    "GUARDS",
    "HOLDS",
    "LIMIT",
    "SWITCHES",
    "VIOLATED",
    "WIDENING",
    "Bounds",
    "Coverage",
    "Found",
    "Question",
    "Rung",
    "SeedsFound",
    "Story",
    "Watch",
    "bound_meaning",
    "bound_names",
    "explore",
    "is_symmetric",
    "ladder",
    "search_runs",
    "search_seeds",
    "spread",
    "spread_many",
    "spread_seeds",
    "story_of",
]
