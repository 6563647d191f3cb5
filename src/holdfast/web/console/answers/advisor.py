"""Asks the advisor what the settings of a topic can lose, within a few seconds."""

from __future__ import annotations

from typing import Any, Final

from holdfast.cluster.client.client import Client, addresses
from holdfast.cluster.errors import ClusterError

SECONDS: Final = 8.0
MOST_LINES: Final = 8


def advice_for(bootstrap: str, topic: str) -> dict[str, Any]:
    """Verdict and losses, in words. ClusterError if the topic cannot be asked about."""
    try:
        from holdfast.search.advise import AskedError, advise, ask_cluster, asked_of
    except ModuleNotFoundError as error:
        hint = "pip install 'holdfast[search]'"
        raise ClusterError(f"the advisor needs {error.name}", hint=hint) from None
    try:
        with Client(addresses(bootstrap)) as client:
            given = ask_cluster(client, topic, bootstrap)
        advice = advise(asked_of([given]), failures=1, seconds=SECONDS)
    except AskedError as error:
        raise ClusterError(str(error)) from None
    lines = [
        {
            "faults": line.loss.faults,
            "meaning": line.loss.meaning,
            "loss": line.loss.is_loss,
            "remedies": [f"{key}={value}" for key, value in line.remedies],
        }
        for line in advice.lines[:MOST_LINES]
    ]
    return {"verdict": advice.verdict, "lines": lines, "survives": advice.data_survives}
