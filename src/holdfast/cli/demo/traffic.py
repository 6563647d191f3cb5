"""The demo's producer: sends the year's flights at a steady rate, every send in the ledger."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Final, Self

from holdfast.cli.demo.flights import COUNT, TOPIC, events
from holdfast.ledger import LedgerProducer

RATE: Final = 7_000
"""Events per second: slow enough that the faults fall into the middle of the stream."""
STEP: Final = 200
"""Events between two looks at the clock."""
FLUSH_S: Final = 1.0


class Traffic:
    """Sends on a thread of its own, up to the allowed share."""

    def __init__(self, bootstrap: str, ledger: Path, settings: dict[str, Any]) -> None:
        config = {"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0, **settings}
        self._producer = LedgerProducer(config, ledger=ledger)
        self._thread = threading.Thread(target=self._run, name="flights", daemon=True)
        self._may_go_on = threading.Condition()
        self._limit = 0
        self._stop = False
        self.failure: BaseException | None = None
        self.sent = 0
        self.acknowledged = 0
        self.last_answer_s: dict[int, float] = {}
        """When each partition last acknowledged something."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self.allow(1.0)
        self._thread.join()

    def allow(self, share: float) -> None:
        """Let it send up to this share of all flights."""
        with self._may_go_on:
            self._limit = int(COUNT * share)
            self._may_go_on.notify()

    @property
    def is_done(self) -> bool:
        """All are sent and answered, or it has failed."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._send_all()
            while self._producer.flush(FLUSH_S) and not self._stop:
                pass  # each record is acknowledged or fails in the end
        except BaseException as error:  # noqa: BLE001  # raised by the waiting thread
            self.failure = error

    def _send_all(self) -> None:
        begun = time.monotonic()
        for event in events():
            while True:
                try:
                    self._producer.produce(
                        TOPIC, event.value, event.key, on_delivery=self._delivered
                    )
                    break
                except BufferError:  # the queue is full: wait for answers
                    self._producer.poll(0.1)
            self.sent += 1
            if self.sent % STEP == 0:
                self._producer.poll(0)
                begun += self._wait_for_permission()
                ahead = begun + self.sent / RATE - time.monotonic()
                if ahead > 0:
                    time.sleep(ahead)
                if self._stop:
                    return

    def _wait_for_permission(self) -> float:
        """How long it had to wait; answers are handled meanwhile."""
        begun = time.monotonic()
        while self.sent >= self._limit and self.sent < COUNT and not self._stop:
            self._producer.poll(0.05)
        return time.monotonic() - begun

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged += 1
            self.last_answer_s[message.partition()] = time.monotonic()
