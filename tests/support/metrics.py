"""Reads a broker's metrics over HTTP, as Prometheus does."""

from __future__ import annotations

import urllib.request
from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

DEADLINE_S: Final = 60.0


def text_of(address: str) -> str:
    """The page at host:port."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEADLINE_S) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        content: bytes = answer.read()
    return content.decode()


def families(text: str) -> list[Metric]:
    """What Prometheus' parser reads on the page."""
    return list(text_string_to_metric_families(text))


class Scraped:
    """The samples of one page."""

    def __init__(self, address: str) -> None:
        self.families = families(text_of(address))

    def value(self, name: str, **labels: str) -> float:
        """The value of the only sample with this name and exactly these labels."""
        [value] = [
            sample.value
            for family in self.families
            for sample in family.samples
            if sample.name == name and sample.labels == labels
        ]
        return float(value)

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of all samples with this name."""
        return [
            dict(sample.labels)
            for family in self.families
            for sample in family.samples
            if sample.name == name
        ]
