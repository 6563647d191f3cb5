"""Flushing a log while it goes on growing: the long part on another thread.

Only the usual case: the active segment is all there is to flush, and every name is on the disk
already. After a roll, or where an aborted transaction has been noted, `Log.flush` does it all.

A cut of the file in between takes the flush back: what is written there afterwards was not part
of it. So does a roll: a sealed segment has indexes that must be on the disk, too.
"""

from __future__ import annotations

from holdfast.model import Offset
from holdfast.storage.log import Log


class BackgroundFlush:
    """Made and ended on the thread that owns the log; `run` belongs on another one."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._segment = log.active
        self._end = log.log_end_offset
        self._size = log.active.file.size
        self._is_cut = False
        self._file = log.active.file.share()
        log.active.readers.append(self)

    @staticmethod
    def suits(log: Log) -> bool:
        """Whether the active segment's bytes are all that has to be flushed."""
        active = log.active
        is_alone = log.recovery_point >= active.base_offset and not log.names_unflushed
        return log.offline is None and is_alone and not active.transactions()

    def cut_at(self, position: int) -> None:
        """The file has been cut there."""
        if position < self._size:
            self._is_cut = True

    def run(self) -> None:
        """Wait for the disk. OSError if it fails; hand that to `end`."""
        self._file.flush()

    def end(self, error: OSError | None, now_ms: int) -> Offset:
        """Raise the recovery point, which is given back; LogOfflineError if the flush failed."""
        log, segment = self._log, self._segment
        self._file.close()
        segment.readers.remove(self)
        if error is not None:
            raise log.fail(error) from error
        if not self._is_cut and segment is log.active and log.offline is None:
            segment.flushed_to(self._size)
            log.recovery_point = Offset(max(log.recovery_point, self._end))
            log.last_flush_ms = now_ms
        return log.recovery_point
