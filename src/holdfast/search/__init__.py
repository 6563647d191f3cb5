"""Searches the real core for every way to lose a record, up to a bound."""

from holdfast.search.bounds import ANY, Bounds, bound_meaning, bound_names
from holdfast.search.bounds_ladder import GUARDS, SWITCHES, WIDENING, Rung, ladder
from holdfast.search.explore import HOLDS, LIMIT, VIOLATED, Found, Watch, explore
from holdfast.search.limits import Coverage
from holdfast.search.parallel.processes import spread, spread_many
from holdfast.search.question import Question
from holdfast.search.random_search import SeedsFound, search_runs, search_seeds, spread_seeds
from holdfast.search.scenario.scenario_writer import WrittenScenario, write_scenario
from holdfast.search.states.symmetry import is_symmetric

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
    "Watch",
    "WrittenScenario",
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
    "write_scenario",
]
