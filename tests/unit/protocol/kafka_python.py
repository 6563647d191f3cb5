"""kafka-python's message classes by name. It warns at import, and warnings are errors here."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage

    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)

KAFKA_PYTHON: dict[str, Any] = {cls.__name__: cls for cls in ApiMessage.__subclasses__()}
