"""One partition's log on an injected disk: segments, indexes, checkpoints, recovery.

Storage keeps bytes and finds them again. It decides nothing about replication: offsets, epochs and
truncation points come from the core. All files have Apache Kafka's formats, byte for byte.

Storage has no threads and no clock. `docs/storage.md` lists what a broker calls, when, and on which
thread.
"""

from holdfast.storage.append_checks import span_of
from holdfast.storage.background_flush import BackgroundFlush
from holdfast.storage.checkpoints.offset_checkpoints import CheckpointWrite
from holdfast.storage.cleaner.cleaner import Cleaner, Progress, cleaning_need
from holdfast.storage.deferred_deletions import Removal
from holdfast.storage.disk import DirectoryLockedError, Disk
from holdfast.storage.errors import (
    AppendRefusedError,
    LogClosedError,
    LogOfflineError,
    OffsetOutOfRangeError,
)
from holdfast.storage.inspect.log_verification import Examined, examine_log
from holdfast.storage.log import Log
from holdfast.storage.log_directories import (
    Disks,
    DuplicateLogError,
    LogDirectories,
    NoLogDirectoryError,
    is_full,
)
from holdfast.storage.log_directory import LogDirectory
from holdfast.storage.log_reader import (
    aborted_transactions,
    latest_timestamp,
    locate,
    offset_for_timestamp,
    read,
)
from holdfast.storage.log_settings import LogSettings
from holdfast.storage.real_disk import RealDisk
from holdfast.storage.recovery.log_opening import LogOpening
from holdfast.storage.recovery.log_recovery import LastKnown, OpenedLog, open_log
from holdfast.storage.retention import apply_retention, dropped_below

__all__ = [
    "AppendRefusedError",
    "BackgroundFlush",
    "CheckpointWrite",
    "Cleaner",
    "DirectoryLockedError",
    "Disk",
    "Disks",
    "DuplicateLogError",
    "Examined",
    "LastKnown",
    "Log",
    "LogClosedError",
    "LogDirectories",
    "LogDirectory",
    "LogOfflineError",
    "LogOpening",
    "LogSettings",
    "NoLogDirectoryError",
    "OffsetOutOfRangeError",
    "OpenedLog",
    "Progress",
    "RealDisk",
    "Removal",
    "aborted_transactions",
    "apply_retention",
    "cleaning_need",
    "dropped_below",
    "examine_log",
    "is_full",
    "latest_timestamp",
    "locate",
    "offset_for_timestamp",
    "open_log",
    "read",
    "span_of",
]
