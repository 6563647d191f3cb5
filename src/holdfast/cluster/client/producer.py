"""A producer that notes acknowledged records; imports confluent-kafka when one is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.cluster.client.acknowledged_records import Acknowledgement, Ledger
from holdfast.cluster.errors import ClusterError

Delivered = Callable[[Any, Any], None]
FLUSH_S: Final = 60.0
DEFAULTS: Final = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}


class CheckedProducer:
    """A confluent_kafka.Producer that notes its acknowledged records, for a check at a test's end.

    It does not build on holdfast.ledger.LedgerProducer, which writes checksums to files for a later
    audit: a failing test shows the lost values themselves, so they stay in memory, and a test needs
    neither files nor pyarrow, which the pytest plugin must not require.
    """

    def __init__(self, ledger: Ledger, bootstrap: str, config: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise ClusterError(
                "producer() needs confluent-kafka",
                hint="pip install confluent-kafka, or use produce(), which needs nothing",
            ) from None
        settings = {**DEFAULTS, **config, "bootstrap.servers": bootstrap}
        acks = str(settings.get("request.required.acks", settings["acks"]))
        if acks in ("0", "1") and "enable.idempotence" not in config:
            settings["enable.idempotence"] = False  # librdkafka refuses the pair
        self._acks = _ACKS.get(acks, -1)
        self._ledger = ledger
        self._producer = Producer(settings)

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        on_delivery: Delivered | None = None,
        **more: Any,
    ) -> None:
        """Queue a record; its result is known after `flush`, or in `on_delivery`."""

        def delivered(error: Any, message: Any) -> None:
            self._delivered(error, message)
            if on_delivery is not None:
                on_delivery(error, message)

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered, **more)
        self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        # With acks=0 librdkafka reports success although no broker has acknowledged.
        if error is not None or self._acks == 0:
            self._ledger.failed()
            return
        offset = message.offset()
        if offset is None:
            return  # a retry found its record stored, at an unknown offset
        self._ledger.acknowledged(
            Acknowledgement(
                message.topic(),
                message.partition(),
                offset,
                message.key(),
                message.value(),
                self._acks,
            )
        )

    def poll(self, timeout_s: float = 0.0) -> int:
        """Serve delivery reports."""
        return int(self._producer.poll(timeout_s))

    def flush(self, timeout_s: float = FLUSH_S) -> int:
        """Wait for the answers; returns how many records still have none."""
        return int(self._producer.flush(timeout_s))
