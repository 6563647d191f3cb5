"""Running many seeds of the whole broker: what the files of seeds share.

They are in several files because pytest-xdist keeps a file's tests together.
"""

from __future__ import annotations

from holdfast.lab.simulation import simulate

PER_TEST = 25
OPEN = {
    2888: "a producer's first batch is refused for lack of replicas, its second is not, and then "
    "the first is out of order (docs/broker.md, What is not there yet)",
}
"""Seeds that fail, and the hole they show. Whoever closes it moves them to broker_seeds.txt."""


def parts(first: int, count: int) -> list[range]:
    """Ranges of seeds, a test's worth each."""
    return [range(at, at + PER_TEST) for at in range(first, first + count, PER_TEST)]


def check(seeds: range) -> None:
    """Nothing fails in any of them, but for what is known to."""
    wanted = [seed for seed in seeds if seed not in OPEN]
    failed = {seed: run.failures for seed in wanted if (run := simulate(seed)).failures}
    told = "".join(f"\n  holdfast lab broker {seed}: {why[0]}" for seed, why in failed.items())
    assert not failed, told
