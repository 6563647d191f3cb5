"""Collects `*.scenario` files as tests: one test a variant. `--rewrite` accepts what happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.lab.scenarios.rewrite import rewritten
from holdfast.lab.scenarios.run import Mismatch, Run, run_scenario
from holdfast.lab.scenarios.scenario import Scenario, ScenarioError, Variant, parse


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option of our own."""
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="replace every scenario's expectations with what happened; explain each changed line",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A scenario file is a collector of its variants."""
    if file_path.suffix != ".scenario":
        return None
    collector: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    return collector


class ScenarioFile(pytest.File):
    """One story."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each variant."""
        scenario = parse(self.path.read_text(encoding="utf-8"), str(self.path))
        if self.config.getoption("--rewrite"):
            yield RewriteItem.from_parent(self, name="rewrite", scenario=scenario)
            return
        for variant in scenario.variants:
            yield VariantItem.from_parent(
                self, name=variant.name, scenario=scenario, variant=variant
            )


class MismatchError(Exception):
    """A story that went otherwise than it is told."""


class VariantItem(pytest.Item):
    """One story under one variant."""

    def __init__(self, *, scenario: Scenario, variant: Variant, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.scenario = scenario
        self.variant = variant

    def runtest(self) -> None:
        """Play it and compare."""
        run = run_scenario(self.scenario, self.variant)
        if run.mismatches:
            raise MismatchError(_told(run))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        """The difference, not a traceback."""
        if isinstance(excinfo.value, MismatchError | ScenarioError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the story is."""
        return self.path, 0, f"{self.scenario.id} [{self.variant.name}]"


class RewriteItem(pytest.Item):
    """Replaces a story's expectations by what happened."""

    def __init__(self, *, scenario: Scenario, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.scenario = scenario

    def runtest(self) -> None:
        """Play every variant, then write the file."""
        self.path.write_text(rewritten(self.scenario), encoding="utf-8")


def _told(run: Run) -> str:
    return "\n\n".join(_difference(run.scenario.path, one) for one in run.mismatches)


def _difference(path: str, mismatch: Mismatch) -> str:
    lines = [f"{path}:{mismatch.line}: the story went otherwise"]
    lines.extend(f"  expected  {line}" for line in mismatch.expected)
    lines.extend(f"  happened  {line}" for line in mismatch.actual)
    return "\n".join(lines)
