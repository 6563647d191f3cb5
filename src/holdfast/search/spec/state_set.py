"""An exact set of packed states: sorted arrays, searched and merged as a whole.

A state of one word is its own key. Longer states have a 64-bit hash, and every match is compared:
if two states ever share a hash, all are hashed again with another salt.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.search.spec.layout import Flags, States

Keys = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class _SharedHashError(Exception):
    pass


class StateSet:
    def __init__(self, words: int) -> None:
        self._salt = 0
        self._keys: Keys = np.zeros(0, np.uint64)
        self._states: States = np.zeros((words, 0), np.uint64)

    def __len__(self) -> int:
        return len(self._keys)

    def unseen(self, states: States) -> States:
        """The states that are not in the set, without duplicates."""
        # Equal hashes are one in billions: one more try with another salt is enough.
        while True:
            try:
                keys, states = self._distinct(states)
                return states[:, ~self._known(keys, states)]
            except _SharedHashError:
                self._resalt()

    def add(self, states: States) -> None:
        """Add states that `unseen` has returned."""
        keys = np.concatenate([self._keys, self._hash(states)])
        if len(states) == 1:
            keys.sort(kind="stable")  # two sorted runs: this merges them
            self._keys, self._states = keys, keys[None, :]
            return
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._states = np.concatenate([self._states, states], axis=1)[:, order]

    def _distinct(self, states: States) -> tuple[Keys, States]:
        if len(states) == 1:
            keys = np.sort(states[0])
            keys = keys[_first_of_its_kind(keys)]
            return keys, keys[None, :]
        keys = self._hash(states)
        order = np.argsort(keys)
        keys, states = keys[order], states[:, order]
        first = _first_of_its_kind(keys)
        if (states[:, 1:] != states[:, :-1])[:, ~first[1:]].any():
            raise _SharedHashError
        return keys[first], states[:, first]

    def _known(self, keys: Keys, states: States) -> Flags:
        if not len(self._keys):
            return np.zeros(len(keys), np.bool_)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known: Flags = self._keys[place] == keys
        if len(states) > 1 and (self._states[:, place[known]] != states[:, known]).any():
            raise _SharedHashError
        return known

    def _hash(self, states: States) -> Keys:
        keys: Keys = states[0]
        if len(states) == 1:
            return keys
        keys = np.full(states.shape[1], self._salt, np.uint64)
        for word in states:
            keys = (keys ^ word) * _ODD
            keys ^= keys >> _HALF
        return keys

    def _resalt(self) -> None:
        self._salt += 1
        keys = self._hash(self._states)
        order = np.argsort(keys)
        self._keys, self._states = keys[order], self._states[:, order]


def _first_of_its_kind(keys: Keys) -> Flags:
    """The places where a sorted array has a new key."""
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first
