"""What a server does by itself: compaction, retention, the sweep. One thread, one thing after the other."""

from __future__ import annotations

import logging
import threading
import time

from daskscope.errors import DaskscopeError
from daskscope.server import rendering
from daskscope.server.services import Services
from daskscope.server.trouble import in_our_words
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
            ("retention", self.retain, RETAIN_EVERY_S),
            ("sweep", self.sweep, SWEEP_EVERY_S),
        )
        begin = time.monotonic()
        # The sweep looks at every file: not while the server starts.
        next_time = {"compaction": begin, "retention": begin + 60, "sweep": begin + 600}
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
                # Once a round, or a run that cannot be compacted would be tried without end.
                tried.add(run)
                if self._stop.is_set():
                    return
                self._compact(run, account, over=over)

    def _compact(self, run: int, account: int, *, over: bool) -> None:
        services = self.services
        done = compact(services.database, services.vault, services.store, account, run, services.clock(), over=over)
        if done is not None:
            services.counters.add("compactions")
            services.counters.add("compacted_rows", done.rows)
            if over:
                self._render(run, account)

    def _render(self, run: int, account: int) -> None:
        """Make the reports of what is large before somebody asks: a million tasks take five seconds, once."""
        services = self.services
        with services.database.read() as connection:
            subjects = large_subjects(connection, run, RENDER_TASKS, RENDER_MOST)
        for title, computation in subjects:
            if self._stop.is_set():
                return
            rendering.of_run(services, account, run, title, computation)

    def retain(self) -> None:
        services, settings = self.services, self.services.settings
        limits = Limits(settings.keep_rows_days, settings.keep_sums_days)
        apply_retention(services.database, services.store, limits, services.clock())

    def sweep(self) -> None:
        removed = sweep(self.services.database, self.services.store)
        if removed:
            logger.info("removed %d files nobody named", removed)
