"""A process that sends until it is killed: `python sender.py BOOTSTRAP FOLDER TOPIC`."""

from __future__ import annotations

import sys

from holdfast.ledger import LedgerProducer


def main(bootstrap: str, folder: str, topic: str) -> None:
    producer = LedgerProducer({"bootstrap.servers": bootstrap, "linger.ms": 5}, ledger=folder)
    number = 0
    while True:
        try:
            producer.produce(topic, b"value %d" % number, key=b"%d" % number)
            number += 1
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
