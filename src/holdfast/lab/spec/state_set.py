"""An exact set of packed states: sorted arrays, searched and merged as a whole.

States of one word are their own keys. Longer ones are found by a 64-bit hash, and every match is
compared: should two states ever share a hash, all are hashed anew with another salt.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.lab.spec.layout import States

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
        """Those not in the set, each once."""
        # Sharing a hash is bad luck, one in billions: once more, with another salt, is enough.
        while True:
            try:
                keys, states = self._distinct(states)
                return states[:, ~self._known(keys, states)]
            except _SharedHashError:
                self._resalt()

    def add(self, states: States) -> None:
        """Take in what `unseen` has returned."""
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
            keys = np.unique(states[0])
            return keys, keys[None, :]
        keys = self._hash(states)
        order = np.argsort(keys)
        keys, states = keys[order], states[:, order]
        same = keys[1:] == keys[:-1]
        if (states[:, 1:] != states[:, :-1])[:, same].any():
            raise _SharedHashError
        first = np.concatenate([np.ones(min(1, len(keys)), np.bool_), ~same])
        return keys[first], states[:, first]

    def _known(self, keys: Keys, states: States) -> npt.NDArray[np.bool_]:
        if not len(self._keys):
            return np.zeros(len(keys), np.bool_)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known: npt.NDArray[np.bool_] = self._keys[place] == keys
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
