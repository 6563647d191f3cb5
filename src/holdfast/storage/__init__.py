"""One partition's log on a disk that is handed in: segments, indexes, checkpoints, recovery.

Storage keeps bytes and finds them again. It decides nothing about replication: offsets, epochs and
where to cut come from the core. All files are Apache Kafka's, byte for byte.
"""

from holdfast.storage.compaction import Cleaning, clean
from holdfast.storage.directory import LogDirectory
from holdfast.storage.disk import DirectoryLockedError, Disk, File
from holdfast.storage.errors import AppendRefusedError, LogOfflineError, OffsetOutOfRangeError
from holdfast.storage.examine import Examined, Finding, examine_log
from holdfast.storage.log import Appended, Log
from holdfast.storage.reading import (
    TimedOffset,
    aborted_transactions,
    latest_timestamp,
    locate,
    offset_for_timestamp,
    read,
)
from holdfast.storage.real_disk import RealDisk
from holdfast.storage.recovery import LastKnown, OpenedLog, Report, open_log
from holdfast.storage.retention import apply_retention
from holdfast.storage.settings import BROKER_NAMES, LogSettings, log_settings

__all__ = [
    "BROKER_NAMES",
    "AppendRefusedError",
    "Appended",
    "Cleaning",
    "DirectoryLockedError",
    "Disk",
    "Examined",
    "File",
    "Finding",
    "LastKnown",
    "Log",
    "LogDirectory",
    "LogOfflineError",
    "LogSettings",
    "OffsetOutOfRangeError",
    "OpenedLog",
    "RealDisk",
    "Report",
    "TimedOffset",
    "aborted_transactions",
    "apply_retention",
    "clean",
    "examine_log",
    "latest_timestamp",
    "locate",
    "log_settings",
    "offset_for_timestamp",
    "open_log",
    "read",
]
