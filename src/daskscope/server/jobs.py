"""What a server does by itself: compaction, retention, the sweep. One thread, one thing after the other."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from pathlib import Path

from daskscope.errors import DaskscopeError
from daskscope.server import rendering
from daskscope.server.failure import Refusal
from daskscope.server.services import Services
from daskscope.server.trouble import in_our_words
from daskscope.storage.blobs import StoreAway
from daskscope.storage.compaction import compact, due
from daskscope.storage.computations import large_subjects
from daskscope.storage.database import detail_of, is_outage
from daskscope.storage.retention import Limits, apply_retention, sweep

logger = logging.getLogger("daskscope.server")

COMPACT_EVERY_S = 5.0
#: Tasks from which a report takes longer than a reader likes to wait, and how many of a run are made ahead.
RENDER_TASKS = 20_000
RENDER_MOST = 20
RETAIN_EVERY_S = 3600.0
SWEEP_EVERY_S = 6 * 3600.0
#: An upload arrives within ten minutes (``UPLOAD_S``) and is rendered in a few more: one that nobody touched for so long belongs to
#: a server that was killed. Not younger ones, even at the start: another server may share the directory.
UPLOAD_AGE_S = 3600.0


class Jobs:
    """Runs jobs until it is stopped; one that fails is reported and tried again."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daskscope-jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 3.0) -> None:
        """End soon; a job that takes longer is left behind, and done again at the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        jobs = (
            ("compaction", self.compact, COMPACT_EVERY_S),
            ("uploads", self.remove_uploads, RETAIN_EVERY_S),
            ("retention", self.retain, RETAIN_EVERY_S),
            ("sweep", self.sweep, SWEEP_EVERY_S),
        )
        begin = time.monotonic()
        # The sweep looks at every file: not while the server starts.
        next_time = {"compaction": begin, "uploads": begin, "retention": begin + 60, "sweep": begin + 600}
        while not self._stop.wait(1.0):
            for name, job, every in jobs:
                if time.monotonic() >= next_time[name] and not self._stop.is_set():
                    self._do(name, job)
                    next_time[name] = time.monotonic() + every

    def _do(self, name: str, job: object) -> None:
        assert callable(job)
        problems = self.services.problems
        try:
            job()
        except Exception as error:
            if name not in problems:
                # Once per outage, with a traceback only where it is ours.
                expected = isinstance(error, DaskscopeError) or is_outage(error)
                logger.error("the %s job fails: %s", name, detail_of(error), exc_info=None if expected else error)
            problems[name] = in_our_words(error)
        else:
            if problems.pop(name, None) is not None:
                logger.info("the %s job works again", name)

    def compact(self) -> None:
        services = self.services
        quiet = services.settings.compact_after * 1_000_000
        tried: set[int] = set()
        while not self._stop.is_set():
            with services.database.read() as connection:
                runs = [item for item in due(connection, services.clock(), quiet) if item[0] not in tried]
            if not runs:
                return
            for run, account, over in runs:
                if self._stop.is_set():
                    return
                # Once a round, or a run that cannot be compacted would be tried without end. One of which a pass took a part gets
                # its next turn after the others.
                if not self._compact(run, account, over=over):
                    tried.add(run)

    def _compact(self, run: int, account: int, *, over: bool) -> bool:
        """One pass; whether it took anything."""
        services = self.services
        done = compact(services.database, services.vault, services.store, account, run, services.clock(), over=over)
        if done is None:
            return False
        services.counters.add("compactions")
        services.counters.add("compacted_rows", done.rows)
        if over:
            self._render(run, account)
        return done.batches > 0

    def _render(self, run: int, account: int) -> None:
        """Make the reports of what is large before somebody asks: a million tasks take five seconds, once."""
        services = self.services
        with services.database.read() as connection:
            subjects = large_subjects(connection, run, RENDER_TASKS, RENDER_MOST)
        for title, computation in subjects:
            if self._stop.is_set():
                return
            try:
                rendering.of_run(services, account, run, title, computation)
            except Refusal:
                # Somebody deleted the cluster meanwhile.
                return
            except Exception as error:
                if is_outage(error) or isinstance(error, StoreAway):
                    raise
                # Rows a recorder made up may be beyond what can be drawn. That is one run's trouble: the others are compacted, and
                # the server is well.
                logger.error(
                    "run %d of account %d (%s) cannot be rendered ahead: %s",
                    run,
                    account,
                    computation or "all of it",
                    detail_of(error),
                    exc_info=None if isinstance(error, DaskscopeError) else error,
                )

    def remove_uploads(self) -> None:
        removed = remove_uploads(self.services.settings.directory, time.time())
        if removed:
            logger.info("removed %d uploads that a server left behind when it was killed", removed)

    def retain(self) -> None:
        services, settings = self.services, self.services.settings
        limits = Limits(settings.keep_rows_days, settings.keep_sums_days)
        apply_retention(services.database, services.store, limits, services.clock())

    def sweep(self) -> None:
        removed = sweep(self.services.database, self.services.store)
        if removed:
            logger.info("removed %d files nobody named", removed)


def remove_uploads(directory: Path, now_s: float) -> int:
    """Delete the directories of uploads that nobody writes any more; how many. They hold what was sent, unsealed."""
    removed = 0
    for upload in directory.glob("upload-*"):
        if upload.is_symlink() or not upload.is_dir() or now_s - _touched(upload) < UPLOAD_AGE_S:
            continue
        # Another server on this directory may be at it as well.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(upload)
            removed += 1
    return removed


def _touched(directory: Path) -> float:
    """When something in it was last written, by the clock of its file system."""
    try:
        return max(path.lstat().st_mtime for path in (directory, *directory.iterdir()))
    except FileNotFoundError:
        # Its own server just deletes it.
        return float("inf")
