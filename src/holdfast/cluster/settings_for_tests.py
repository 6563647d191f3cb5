"""Default settings of a test's cluster."""

from typing import Final

TEST_CONFIG: Final = {
    # A disconnected or paused broker is noticed in seconds, not in Kafka's 18 and 30. A dead
    # process is noticed immediately in any case.
    "broker.session.timeout.ms": "3000",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
}
