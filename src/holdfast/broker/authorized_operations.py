"""The operations that a client is authorized for: all, because there is no authorizer.

The answers that name authorized operations (KIP-430) have one bit for each operation. Without an
authorizer Kafka sets the bits of all operations that a resource type has.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Operation(IntEnum):
    """An operation of Kafka's ACLs, by its code on the wire."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_ON_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
NOT_ASKED: Final = -(2**31)
"""The value for a client that did not ask."""
OF_TOPIC: Final = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    *_ON_CONFIGS,
)
OF_CLUSTER: Final = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.IDEMPOTENT_WRITE,
    *_ON_CONFIGS,
)
OF_GROUP: Final = _bits(Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_ON_CONFIGS)
