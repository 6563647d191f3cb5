"""Holdfast: a replicated commit log that speaks Kafka's wire protocol, and proves it lost nothing.

The rooms below this package are stacked; `pyproject.toml` holds the import contracts. Importing the
package itself loads none of them.
"""

import sys

__version__ = "0.1.0"

if not __debug__:
    # The invariants are asserts. Without them a broken replica would go on and lose data quietly.
    # 64 is "bad input"; a bare SystemExit(message) would exit with 1, which means a failed check.
    sys.stderr.write(
        "holdfast: refusing to run under python -O or PYTHONOPTIMIZE: "
        "its invariants are asserts, and they must stay on\n"
    )
    raise SystemExit(64)
