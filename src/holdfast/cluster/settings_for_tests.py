"""What a test's cluster is set to, unless the test says otherwise."""

from typing import Final

TEST_CONFIG: Final = {
    # A broker that is cut off or stands still is noticed in seconds, not in Kafka's 18 and 30. A
    # dead process is noticed at once in any case.
    "broker.session.timeout.ms": "3000",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
}
