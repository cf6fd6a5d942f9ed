"""Background jobs of a server: compaction, retention and the sweep, in one thread."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from daskscope import units
from daskscope.errors import DaskscopeError
from daskscope.server import documents
from daskscope.server.build_document import Subject
from daskscope.server.errors import Refusal, public_message
from daskscope.server.processes.compact import (
    MAX_NBYTES_HERE,
    MAX_ROWS_HERE,
    CompactionError,
    CompactRequest,
    compact_apart,
)
from daskscope.server.services import Services
from daskscope.storage.base.archive import ClockCheck
from daskscope.storage.base.blobs import LocalStore, StoreAway
from daskscope.storage.base.database import detail_of, is_outage
from daskscope.storage.catalog.computations import NoSuchComputation, large_subjects
from daskscope.storage.catalog.error_groups import index_errors
from daskscope.storage.doctor import LostFiles, lost_rows
from daskscope.storage.runs.compaction import Due, claim, compact, due
from daskscope.storage.runs.retention import Limits, apply_retention, delete_replaced, sweep

logger = logging.getLogger("daskscope.server")

COMPACT_EVERY_S = 5.0
#: After a compaction in the server's own process, the job waits for this many times as long.
PAUSE = 2.0
#: Documents of runs with more tasks take too long to make on demand; how many of a run are built ahead.
BUILD_AHEAD_TASKS = 20_000
MAX_BUILT_AHEAD = 20
#: New error groups are found by parts of their words until they are indexed.
INDEX_EVERY_S = 10.0
#: One document of an earlier version is built anew this often: an upgrade must not keep the server busy.
REFRESH_EVERY_S = 10.0
REPLACED_EVERY_S = 300.0
RETAIN_EVERY_S = 3600.0
SWEEP_EVERY_S = 6 * 3600.0
#: A job that failed is tried again this soon: otherwise an outage at its time is reported for hours.
RETRY_S = 10.0
FILES_EVERY_S = 300.0
#: An upload arrives within ten minutes (``UPLOAD_S``) and its document is built a few minutes later. One that was not written to
#: for this long was left by a killed server. Younger ones may belong to another server on the same directory.
UPLOAD_AGE_S = 3600.0


class Jobs:
    """Runs the jobs until stopped. A job that fails is reported and retried."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.clock = ClockCheck(services.archive)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daskscope-jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 3.0) -> None:
        """Stop soon. A job that takes longer is abandoned and repeated at the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        jobs = (
            ("compaction", self.compact, COMPACT_EVERY_S),
            ("search", self.index_errors, INDEX_EVERY_S),
            ("replaced files", self.delete_replaced, REPLACED_EVERY_S),
            ("documents", self.refresh_document, REFRESH_EVERY_S),
            ("uploads", self.remove_uploads, RETAIN_EVERY_S),
            ("retention", self.retain, RETAIN_EVERY_S),
            ("sweep", self.sweep, SWEEP_EVERY_S),
            # An object store charges for every list.
            (
                "files",
                self.check_files,
                FILES_EVERY_S if isinstance(self.services.archive.store, LocalStore) else SWEEP_EVERY_S,
            ),
        )
        begin = time.monotonic()
        # Sweep later: it lists every file, which is too slow for the start.
        next_time = {
            "compaction": begin,
            "search": begin,
            "replaced files": begin + 60,
            "documents": begin,
            "code": begin + 30,
            "uploads": begin,
            "retention": begin + 60,
            "sweep": begin + 600,
            "files": begin,
        }
        while not self._stop.wait(1.0):
            for name, job, every in jobs:
                if time.monotonic() >= next_time[name] and not self._stop.is_set():
                    is_outage = self._do(name, job)
                    next_time[name] = time.monotonic() + (min(every, RETRY_S) if is_outage else every)

    def _do(self, name: str, job: object) -> bool:
        """Do a job. Return whether it failed and should be tried again soon; to find lost files is its purpose."""
        assert callable(job)
        problems = self.services.problems
        try:
            job()
        except Exception as error:
            if name not in problems:
                # Log once per outage, with a traceback only for our own bugs.
                expected = isinstance(error, DaskscopeError) or is_outage(error)
                logger.error("the %s job fails: %s", name, detail_of(error), exc_info=None if expected else error)
            problems[name] = public_message(error)
            return not isinstance(error, LostFiles)
        else:
            if problems.pop(name, None) is not None:
                logger.info("the %s job works again", name)
        return False

    def compact(self) -> None:
        services = self.services
        quiet = services.settings.compact_after * 1_000_000
        tried: set[int] = set()
        failure: CompactionError | None = None
        while not self._stop.is_set():
            with services.archive.read() as tx:
                runs = [one for one in due(tx, quiet) if one.run not in tried]
            if not runs:
                break
            for one in runs:
                if self._stop.is_set():
                    return
                # Once per round, or a run that cannot be compacted would be retried endlessly. A run that was partly
                # compacted gets its next turn after the others.
                try:
                    with claim(services.archive, one.run) as is_mine:
                        if not is_mine or not self._compact(one):
                            tried.add(one.run)
                except CompactionError as error:
                    failure = error
                    tried.add(one.run)

        if failure is not None:
            # After the others: one run that fails must not delay them.
            raise failure

    def _compact(self, one: Due) -> bool:
        """Run one pass. Return whether it compacted anything."""
        services = self.services
        if one.nbytes > MAX_NBYTES_HERE or one.rows > MAX_ROWS_HERE:
            keep_us = services.archive.keep_replaced_us
            request = CompactRequest(keep_us, one.account, one.run, one.is_over)
            done = compact_apart(services.runner, request)
        else:
            began = time.perf_counter()
            done = compact(services.archive, one.account, one.run, over=one.is_over)
            # When hundreds of clusters end at once, their recorders and readers go first.
            self._stop.wait(PAUSE * (time.perf_counter() - began))
        if done is None:
            return False
        services.counters.add("compactions")
        services.counters.add("compacted_rows", done.rows)
        if one.is_over:
            self._build_ahead(one.run, one.account)
        return done.batches > 0

    def _build_ahead(self, run: int, account: int) -> None:
        """Build documents of large runs before anybody asks: a million tasks take five seconds."""
        services = self.services
        with services.archive.read() as tx:
            subjects = large_subjects(tx, run, BUILD_AHEAD_TASKS, MAX_BUILT_AHEAD)
        for title, computation in subjects:
            if self._stop.is_set():
                return
            with _logged(Subject(account, run, title, computation)):
                documents.of_run(services, account, run, title, computation)

    def refresh_document(self) -> None:
        """Build a document anew that an earlier version made and a reader has opened."""
        subject = self.services.outdated.pop()
        if subject is not None:
            with _logged(subject):
                documents.refresh(self.services, subject)

    def index_errors(self) -> None:
        index_errors(self.services.archive)

    def delete_replaced(self) -> None:
        removed = delete_replaced(self.services.archive, self.clock.now_us())
        if removed:
            logger.info("deleted %s that newer ones replaced", units.counted(removed, "file"))

    def remove_uploads(self) -> None:
        removed = remove_uploads(self.services.settings.directory, time.time())
        if removed:
            logger.info("deleted %d uploads left behind by a killed server", removed)

    def retain(self) -> None:
        services, settings = self.services, self.services.settings
        limits = Limits(settings.keep_rows_days, settings.keep_sums_days)
        removed = apply_retention(services.archive, limits, self.clock.now_us())
        if removed.anything:
            logger.info(
                "retention deleted %s, the rows of %s and %s%s",
                units.counted(removed.runs, "run"),
                units.counted(removed.rows_of_runs, "run"),
                units.counted(removed.reports, "report"),
                "; more is due, and is deleted by the next passes" if removed.is_capped else "",
            )
        services.archive.database.shrink()

    def check_files(self) -> None:
        """Note the runs whose rows are missing; ``/readyz`` reports the problem of this job."""
        found = self.services.lost_rows = lost_rows(self.services.archive)
        if found:
            raise LostFiles(
                f"{units.counted(sum(found.values()), 'row')} of {units.counted(len(found), 'cluster')} are missing, because files "
                "are missing or cut off. Restore them from a backup, or remove them with daskscope doctor --repair"
            )

    def sweep(self) -> None:
        swept = sweep(self.services.archive, self.clock.now_us())
        if swept.files:
            logger.info(
                "deleted %s that no run names%s",
                units.counted(swept.files, "file"),
                f"; {swept.left:,} more are left for the next sweeps" if swept.left else "",
            )


@contextlib.contextmanager
def _logged(subject: Subject) -> Iterator[None]:
    """Log what is wrong with a document. Rows made up by a recorder may be impossible to draw, which concerns one run only."""
    try:
        yield
    except NoSuchComputation:
        pass
    except Exception as error:
        if is_outage(error) or isinstance(error, StoreAway):
            raise
        if isinstance(error, Refusal) and error.code == "not_found":
            # The cluster was deleted meanwhile.
            return
        logger.error(
            "run %d of account %d (%s) cannot be built ahead: %s",
            subject.run,
            subject.account,
            subject.computation or "all of it",
            detail_of(error),
            exc_info=None if isinstance(error, DaskscopeError | Refusal) else error,
        )


def remove_uploads(directory: Path, now_s: float) -> int:
    """Delete abandoned upload directories and return how many. They contain unencrypted data."""
    removed = 0
    for upload in directory.glob("upload-*"):
        if upload.is_symlink() or not upload.is_dir() or now_s - _touched(upload) < UPLOAD_AGE_S:
            continue
        # Another server on this directory may be deleting it too.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(upload)
            removed += 1
    return removed


def _touched(directory: Path) -> float:
    """Return when something in the directory was last written, by the clock of its file system."""
    try:
        return max(path.lstat().st_mtime for path in (directory, *directory.iterdir()))
    except FileNotFoundError:
        # Its own server is deleting it.
        return float("inf")
