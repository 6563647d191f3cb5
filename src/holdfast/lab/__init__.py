"""The lab: scenarios, the simulated world and seeded runs, all on the real replication core.

The lab makes no replication decision: it shows and judges the decisions of the core.
"""

from holdfast.lab.judge.explain import Explanation, explain
from holdfast.lab.judge.remedies import explain_with_remedies, remedies
from holdfast.lab.judge.verdict import Verdict
from holdfast.lab.render.frames import Frame, fold, steps, table
from holdfast.lab.scenarios.catalogue import UnknownScenarioError, ids, load, paths, section_of
from holdfast.lab.scenarios.commands import HANDLERS, Stage
from holdfast.lab.scenarios.options import OPTIONS, build
from holdfast.lab.scenarios.rewrite import rewritten
from holdfast.lab.scenarios.run import PRINTING, Run, new_stage, play, run_scenario
from holdfast.lab.scenarios.scenario import (
    Scenario,
    ScenarioError,
    Step,
    Variant,
    parse,
    suggestion,
)
from holdfast.lab.seeds.seeded_run import SeededRun, run_seed

__all__ = [
    "HANDLERS",
    "OPTIONS",
    "PRINTING",
    "Explanation",
    "Frame",
    "Run",
    "Scenario",
    "ScenarioError",
    "SeededRun",
    "Stage",
    "Step",
    "UnknownScenarioError",
    "Variant",
    "Verdict",
    "build",
    "explain",
    "explain_with_remedies",
    "fold",
    "ids",
    "load",
    "new_stage",
    "parse",
    "paths",
    "play",
    "remedies",
    "rewritten",
    "run_scenario",
    "run_seed",
    "section_of",
    "steps",
    "suggestion",
    "table",
]
