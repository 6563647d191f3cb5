"""A group member with a polling thread, for clients whose consumer is a loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from tests.clients.client import Member

CLOSE_S = 60.0


class PollingMember(Member):
    """`poll` waits briefly and returns values; `owned` returns partitions; `leave` commits.

    Only the thread calls them: most consumers belong to one thread.
    """

    def __init__(
        self,
        poll: Callable[[], Iterable[bytes]],
        owned: Callable[[], Iterable[int]],
        leave: Callable[[], None],
    ) -> None:
        self._values: list[bytes] = []
        self._owned: set[int] = set()
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(poll, owned, leave), daemon=True)
        self._thread.start()

    def assignment(self) -> set[int]:
        self._complain()
        return set(self._owned)

    def values(self) -> list[bytes]:
        self._complain()
        return list(self._values)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(CLOSE_S)
        assert not self._thread.is_alive(), "the consumer does not end"
        self._owned = set()
        self._complain()

    def _run(
        self,
        poll: Callable[[], Iterable[bytes]],
        owned: Callable[[], Iterable[int]],
        leave: Callable[[], None],
    ) -> None:
        try:
            try:
                while not self._is_over.is_set():
                    self._values += poll()
                    self._owned = set(owned())
            finally:
                leave()
        except Exception as error:  # noqa: BLE001 - reported to the test, in another thread
            self._error = error

    def _complain(self) -> None:
        if self._error is not None:
            raise self._error
