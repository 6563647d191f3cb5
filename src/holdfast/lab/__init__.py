"""The lab: scenarios, the simulated world and seeded runs, all on the real replication core.

Nothing here decides how replication works; it shows what the core decides, and judges it.
"""

from holdfast.lab.catalogue import UnknownScenarioError, ids, load, paths, section_of
from holdfast.lab.commands import HANDLERS
from holdfast.lab.explain import Explanation, explain
from holdfast.lab.frames import Frame, fold, steps, table
from holdfast.lab.options import OPTIONS, OptionError, build, parse_option
from holdfast.lab.remedies import remedies
from holdfast.lab.rewrite import rewritten
from holdfast.lab.run import Mismatch, Run, run_scenario
from holdfast.lab.scenario import Scenario, ScenarioError, Variant, normal, parse, suggestion
from holdfast.lab.seeded import SeededRun, run_seed
from holdfast.lab.verdict import OUTCOMES, Verdict

__all__ = [
    "HANDLERS",
    "OPTIONS",
    "OUTCOMES",
    "Explanation",
    "Frame",
    "Mismatch",
    "OptionError",
    "Run",
    "Scenario",
    "ScenarioError",
    "SeededRun",
    "UnknownScenarioError",
    "Variant",
    "Verdict",
    "build",
    "explain",
    "fold",
    "ids",
    "load",
    "normal",
    "parse",
    "parse_option",
    "paths",
    "remedies",
    "rewritten",
    "run_scenario",
    "run_seed",
    "section_of",
    "steps",
    "suggestion",
    "table",
]
