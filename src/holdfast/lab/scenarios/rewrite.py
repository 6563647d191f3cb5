"""Rewrites a scenario file with the actual output in place of the expected output."""

from __future__ import annotations

from collections import Counter

from holdfast.lab.scenarios.run import run_scenario
from holdfast.lab.scenarios.scenario import RULE, Scenario


def rewritten(scenario: Scenario) -> str:
    """The file's text with the actual output. Commit it only if you can explain each change."""
    runs = {one.name: run_scenario(scenario, one) for one in scenario.variants}
    lines = list(scenario.lines)
    for place in reversed(range(len(scenario.steps))):
        step = scenario.steps[place]
        outputs = {name: run.outputs[place] for name, run in runs.items()}
        first = (step.rule_line or step.last_line + 1) - 1
        lines[first : step.last_line] = _blocks(outputs)
    return "\n".join(lines) + "\n"


def _blocks(outputs: dict[str, tuple[str, ...]]) -> list[str]:
    """A block for each variant with its own output, and a bare one for the others."""
    most_common = Counter(outputs.values()).most_common(1)[0]
    shared_output = most_common[0] if most_common[1] > 1 or len(outputs) == 1 else None
    blocks: list[str] = []
    for name, output in outputs.items():
        if output != shared_output:
            blocks.extend((f"{RULE} {name}", *output))
    if shared_output or (shared_output is not None and blocks):
        blocks.extend((RULE, *shared_output))
    return blocks
