"""Replay a graph on a cluster: place each task as Dask's scheduler does, and add up how long everything takes.

- Tasks of a large group without inputs (*root-ish*) wait in a queue until a worker has a free slot, or go to workers in blocks
  if queuing is off.
- Other tasks without inputs go to the worker with the least work. Tasks with inputs go to one of the workers that have an input:
  the one where they start first, by bytes to move and expected work.
- Every second idle workers take tasks from the busiest one.
- Tasks that need the lock of all workers wait until no other one has it.

A million tasks take some seconds: there is one entry in a heap for each execution, and one for each that waits for a message.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import pairwise

from daskscope.analysis.what_if.graph import MIN_CPU_SHARE, Graph, Overheads, Replayed, Setup, SharedCores

#: A group is root-ish if it has more than this many tasks per thread, and inputs from fewer groups and tasks than this.
ROOTISH_PER_THREAD, ROOTISH_INPUTS = 2, 5
#: Up to this many workers the scheduler looks for the one with the least work; with more it takes turns.
MAX_COMPARED = 20
#: How often the scheduler balances work, which tasks are too short to be worth it, and how many workers it takes tasks from.
STEAL_EVERY_US, MIN_STOLEN_US, MAX_VICTIMS = 1_000_000.0, 5_000.0, 10
#: The scheduler counts this much for a transfer besides its bytes when it balances work.
STEAL_LATENCY_US, MAX_STEAL_RATIO = 100_000.0, 100.0


def replay(graph: Graph, setup: Setup, overheads: Overheads) -> Replayed:
    """Return the wall time of the graph on a cluster, and how it is spent."""
    return _Replay(graph, setup, overheads).run()


def is_rootish(group_size: int, input_groups: int, input_tasks: int, threads: int) -> bool:
    """Return whether Dask takes the tasks of a group for root tasks on a cluster with the given number of threads."""
    return group_size > ROOTISH_PER_THREAD * threads and input_groups < ROOTISH_INPUTS and input_tasks < ROOTISH_INPUTS


class _Replay:
    """The state of the cluster. Events are (time, code): an execution that ends, or one of the codes after them."""

    def __init__(self, graph: Graph, setup: Setup, overheads: Overheads) -> None:
        self.graph, self.setup, self.overheads = graph, setup, overheads
        count, workers = len(graph.us), len(setup.threads)
        self.workers = range(workers)
        self.wake, self.join, self.cpu_end = count, count + workers, count + 2 * workers
        self.submit, self.balance = count + 3 * workers, count + 3 * workers + 1
        self.events: list[tuple[float, int]] = []
        self.last_us = self.scheduler_free = 0.0
        offsets = graph.inputs_from
        self.missing = [stop - start for start, stop in pairwise(offsets)]
        offsets = graph.dependents_from
        self.users = [stop - start for start, stop in pairwise(offsets)]
        self.place = [-1] * count
        self._init_groups()
        self._init_workers(workers)
        self._init_submissions()

    def _init_groups(self) -> None:
        graph, setup = self.graph, self.setup
        total = sum(setup.threads)
        self.total_threads = total
        self.rootish = [is_rootish(g.size, g.input_groups, g.input_tasks, total) for g in graph.groups]
        self.mean_us = [group.mean_us for group in graph.groups]
        self.lock_share = [group.lock_share for group in graph.groups]
        self.has_locks = any(self.lock_share)
        self.lock_free = self.locked_us = 0.0
        #: For each group the worker of the current block, and how many tasks are left for it.
        self.block = [(-1, 0)] * len(graph.groups)
        per_host = max(setup.hosts.count(host) for host in set(setup.hosts)) * max(setup.threads)
        crowded = per_host * max((g.cpu_share for g in graph.groups), default=0.0) > setup.cores - setup.others or (
            max(setup.threads) * max((g.gil_share for g in graph.groups), default=0.0) > 1.0
        )
        self.shared = SharedCores(setup.hosts, setup.cores, setup.others) if crowded else None

    def _init_workers(self, workers: int) -> None:
        setup = self.setup
        self.slots = [
            max(1, math.ceil(threads * setup.saturation)) if math.isfinite(setup.saturation) else 0
            for threads in setup.threads
        ]
        self.queues_roots = math.isfinite(setup.saturation)
        self.running: list[int] = []
        #: Threads without a task; assigned tasks; their expected work.
        self.idle, self.processing, self.occupancy = [0] * workers, [0] * workers, [0.0] * workers
        #: Tasks at a worker: ready for a thread, and with the time at which they will be.
        self.ready: list[list[int]] = [[] for _ in range(workers)]
        self.pending: list[list[tuple[float, int]]] = [[] for _ in range(workers)]
        self.waiting = 0
        #: When each worker looks at its tasks next.
        self.wake_us = [math.inf] * workers
        self.loop_free, self.link_free = [0.0] * workers, [0.0] * workers
        self.memory, self.peak = [0] * workers, [0] * workers
        self.all_memory = self.peak_all = self.transferred = self.stolen = 0
        #: When a copy of a result (result × workers + worker) is there, and the workers with copies of a result.
        self.copies: dict[int, float] = {}
        self.copied: dict[int, list[int]] = {}
        self.queue: list[int] = []
        self.turn = 0
        self.is_balancing = False

    def _init_submissions(self) -> None:
        #: The next submission, its next task, and whether all tasks of the one before are there. Unfinished tasks.
        self.submission = self.root = self.unfinished = self.finished = 0
        self.is_submitted = False
        self.submitted_us = 0.0
        for worker, time in enumerate(self.setup.joins_us):
            heappush(self.events, (time, self.join + worker))
        self._begin_submission(0.0)

    def run(self) -> Replayed:
        events, count = self.events, len(self.graph.us)
        while events:
            now, code = heappop(events)
            if code < count:
                self._end(code, now)
            elif code < self.join:
                self._start_ready(code - count, now)
            elif code < self.cpu_end:
                self._join(code - self.join, now)
            elif code < self.submit:
                self._end_on_shared_core(code - self.cpu_end, now)
            elif code == self.submit:
                self._submit(now)
            else:
                self._balance(now)
            if self.shared is not None:
                for worker in self.shared.update(now):
                    heappush(events, (self.shared.next_us[worker], self.cpu_end + worker))
        assert self.finished == count, f"{count - self.finished} executions never ran"
        return Replayed(
            wall_us=self.last_us,
            busy_us=math.fsum(self.graph.us),
            peak_worker_nbytes=max(self.peak),
            peak_nbytes=self.peak_all,
            transferred=self.transferred,
            stolen=self.stolen,
            locked_us=self.locked_us,
        )

    # ------------------------------------------------------------------------------------------------ client and workers

    def _begin_submission(self, now: float) -> None:
        """Let the client submit the next tasks, a while after everything before has ended."""
        if self.submission < len(self.graph.submissions):
            self.root = 0
            self.submitted_us = now + self.graph.submissions[self.submission].pause_us
            heappush(self.events, (self.submitted_us, self.submit))

    def _submit(self, now: float) -> None:
        part = self.graph.submissions[self.submission]
        root, begin = self.root, self.submitted_us
        while root < len(part.roots) and begin + part.delays_us[root] <= now:
            self._place(part.roots[root], now)
            root += 1
        self.root = root
        self._fill(now)
        if root < len(part.roots):
            heappush(self.events, (begin + part.delays_us[root], self.submit))
        else:
            self.submission += 1
            self.is_submitted = bool(self.unfinished)
            if not self.unfinished:
                self._begin_submission(now)

    def _join(self, worker: int, now: float) -> None:
        self.running.append(worker)
        self.idle[worker] = self.setup.threads[worker]
        if len(self.running) == 1:
            # Tasks that came before any worker.
            early, self.queue = self.queue, []
            self.unfinished -= len(early)
            for task in early:
                self._place(task, now)
        self._fill(now)
        self._want_balance(now)

    def _fill(self, now: float) -> None:
        """Assign queued tasks to the workers with the fewest tasks for their threads."""
        if not self.queue or not self.queues_roots:
            return
        processing, threads, slots = self.processing, self.setup.threads, self.slots
        waiting = [(processing[w] / threads[w], w) for w in self.running if processing[w] < slots[w]]
        waiting.sort()
        while self.queue and waiting:
            _, worker = heappop(waiting)
            self._assign(heappop(self.queue), worker, now)
            if processing[worker] < slots[worker]:
                heappush(waiting, (processing[worker] / threads[worker], worker))

    # ------------------------------------------------------------------------------------------------ the scheduler

    def _place(self, task: int, now: float) -> None:
        """Assign or queue a task whose inputs exist."""
        graph = self.graph
        group = graph.group[task]
        self.unfinished += 1
        if not self.running or (self.rootish[group] and self.queues_roots):
            heappush(self.queue, task)
        elif self.rootish[group]:
            self._assign(task, self._block_worker(group), now)
        else:
            start, stop = graph.inputs_from[task], graph.inputs_from[task + 1]
            if stop == start:
                worker = self._least_busy()
            elif stop == start + 1 and graph.inputs[start] not in self.copied:
                worker = self.place[graph.inputs[start]]
            else:
                worker = self._best_for(graph.inputs[start:stop])  # type: ignore[arg-type]
            self._assign(task, worker, now)

    def _block_worker(self, group: int) -> int:
        worker, left = self.block[group]
        if left <= 0:
            threads = self.setup.threads
            idle = [w for w in self.running if self.processing[w] < threads[w]] or self.running
            worker = min(idle, key=lambda w: (self.occupancy[w] / threads[w], self.memory[w]))
            left = self.graph.groups[group].size * threads[worker] // self.total_threads
        self.block[group] = worker, left - 1
        return worker

    def _least_busy(self) -> int:
        running, occupancy = self.running, self.occupancy
        self.turn += 1
        if len(running) >= MAX_COMPARED:
            return running[self.turn % len(running)]
        worker = min(running, key=occupancy.__getitem__)
        if not occupancy[worker]:
            for number in range(len(running)):
                other = running[(self.turn + number) % len(running)]
                if not occupancy[other]:
                    return other
        return worker

    def _best_for(self, inputs: list[int]) -> int:
        """Return the worker with an input where the task starts first."""
        place, copied, nbytes = self.place, self.copied, self.graph.nbytes
        held: dict[int, int] = {}
        total = 0
        for given in inputs:
            size = nbytes[given]
            total += size
            worker = place[given]
            held[worker] = held.get(worker, 0) + size
            for other in copied.get(given, ()):
                held[other] = held.get(other, 0) + size
        if len(held) == 1:
            return worker
        threads, occupancy, memory, bandwidth = (
            self.setup.threads, self.occupancy, self.memory, self.overheads.bandwidth,
        )  # fmt: skip
        return min(held, key=lambda w: (occupancy[w] / threads[w] + (total - held[w]) / bandwidth, memory[w]))

    def _assign(self, task: int, worker: int, now: float) -> None:
        graph = self.graph
        self.place[task] = worker
        self.processing[worker] += 1
        self.occupancy[worker] += self.mean_us[graph.group[task]]
        at = now + 0.5 * self.overheads.link_us
        start, stop = graph.inputs_from[task], graph.inputs_from[task + 1]
        if start < stop and self.setup.has_transfers:
            for given in graph.inputs[start:stop]:
                if self.place[given] != worker:
                    at = max(at, self._fetch(given, worker, now))
        heappush(self.pending[worker], (at, task))
        if self.idle[worker] and at < self.wake_us[worker]:
            self.wake_us[worker] = at
            heappush(self.events, (at, self.wake + worker))

    def _fetch(self, given: int, worker: int, now: float) -> float:
        """Return when a copy of a result is at a worker. Results arrive there one after the other."""
        key = given * len(self.workers) + worker
        at = self.copies.get(key)
        if at is None:
            size = self.graph.nbytes[given]
            begin = max(now + 0.5 * self.overheads.link_us, self.link_free[worker])
            self.link_free[worker] = begin + size / self.overheads.bandwidth
            at = self.copies[key] = self.link_free[worker] + self.overheads.transfer_us
            self.copied.setdefault(given, []).append(worker)
            self.transferred += size
            self._store(worker, size)
        return at

    def _store(self, worker: int, size: int) -> None:
        self.memory[worker] += size
        self.all_memory += size
        if self.memory[worker] > self.peak[worker]:
            self.peak[worker] = self.memory[worker]
            if self.all_memory > self.peak_all:
                self.peak_all = self.all_memory
        elif self.all_memory > self.peak_all:
            self.peak_all = self.all_memory

    def _release(self, given: int) -> None:
        size = self.graph.nbytes[given]
        self.memory[self.place[given]] -= size
        self.all_memory -= size
        for worker in self.copied.pop(given, ()):
            self.memory[worker] -= size
            self.all_memory -= size

    # ------------------------------------------------------------------------------------------------ executions

    def _start_ready(self, worker: int, now: float) -> None:
        """Start tasks on the idle threads of a worker."""
        if self.wake_us[worker] <= now:
            self.wake_us[worker] = math.inf
        pending, ready = self.pending[worker], self.ready[worker]
        while pending and pending[0][0] <= now:
            heappush(ready, heappop(pending)[1])
            self.waiting += 1
        idle, us = self.idle[worker], self.graph.us
        while idle and ready:
            idle -= 1
            self.waiting -= 1
            task = heappop(ready)
            begin = self.loop_free[worker]
            if begin < now:
                begin = now
            begin += self.overheads.gap_us
            self.loop_free[worker] = begin
            if self.has_locks and self.lock_share[self.graph.group[task]]:
                self._start_with_lock(worker, task, begin)
            elif self.shared is None:
                heappush(self.events, (begin + us[task], task))
            else:
                self._start_on_shared_core(worker, task, begin, now)
        self.idle[worker] = idle
        if idle:
            if pending:
                if pending[0][0] < self.wake_us[worker]:
                    self.wake_us[worker] = pending[0][0]
                    heappush(self.events, (pending[0][0], self.wake + worker))
            elif not self.is_balancing:
                self._want_balance(now)

    def _start_with_lock(self, worker: int, task: int, begin: float) -> None:
        """Run an execution that needs the lock for its last part. Executions get it in the order in which they started."""
        group = self.graph.groups[self.graph.group[task]]
        held_us = self.graph.us[task] * group.lock_share
        wants_us = begin + self.graph.us[task] - held_us
        has_us = max(wants_us, self.lock_free)
        self.locked_us += has_us - wants_us
        self.lock_free = has_us + held_us
        heappush(self.events, (self.lock_free, task))
        if self.shared is not None:
            self.shared.add(worker, group.cpu_share, group.gil_share)

    def _start_on_shared_core(self, worker: int, task: int, begin: float, now: float) -> None:
        assert self.shared is not None
        group = self.graph.groups[self.graph.group[task]]
        us = begin - now + self.graph.us[task]
        if max(group.cpu_share, group.gil_share) < MIN_CPU_SHARE:
            heappush(self.events, (now + us, task))
        else:
            self.shared.start(worker, task, us, now)
        self.shared.add(worker, group.cpu_share, group.gil_share)

    def _end_on_shared_core(self, worker: int, now: float) -> None:
        assert self.shared is not None
        if self.shared.next_us[worker] == now:
            self._end(self.shared.end(worker), now)

    def _end(self, task: int, now: float) -> None:
        graph, overheads = self.graph, self.overheads
        worker = self.place[task]
        self.last_us = now
        if self.shared is not None:
            group = graph.groups[graph.group[task]]
            self.shared.add(worker, -group.cpu_share, -group.gil_share)
        self._store(worker, graph.nbytes[task])
        users = self.users
        for given in graph.inputs[graph.inputs_from[task] : graph.inputs_from[task + 1]]:
            users[given] -= 1
            if not users[given]:
                self._release(given)
        self.processing[worker] -= 1
        self.occupancy[worker] -= self.mean_us[graph.group[task]]
        self.idle[worker] += 1
        known = now + 0.5 * overheads.link_us
        if known < self.scheduler_free:
            known = self.scheduler_free
        self.scheduler_free = known = known + overheads.scheduler_us
        missing, queued = self.missing, len(self.queue)
        for dependent in graph.dependents[graph.dependents_from[task] : graph.dependents_from[task + 1]]:
            missing[dependent] -= 1
            if not missing[dependent]:
                self._place(dependent, known)
        if len(self.queue) > queued:
            self._fill(known)
        # While tasks are queued, this is the only worker with a free slot.
        while self.queue and self.processing[worker] < self.slots[worker]:
            self._assign(heappop(self.queue), worker, known)
        self._start_ready(worker, now)
        self.unfinished -= 1
        self.finished += 1
        if not self.unfinished and self.is_submitted:
            self.is_submitted = False
            self._begin_submission(now)

    # ------------------------------------------------------------------------------------------------ work stealing

    def _want_balance(self, now: float) -> None:
        """Balance work soon, if a worker has tasks that wait for a thread. On average half of the interval is over."""
        if self.setup.has_stealing and len(self.running) > 1 and self.waiting:
            self.is_balancing = True
            heappush(self.events, (now + STEAL_EVERY_US / 2, self.balance))

    def _balance(self, now: float) -> None:
        self.is_balancing = False
        occupancy = self.occupancy
        # Once for all workers: with thousands of them, the sum is the most expensive part.
        mean_us = sum(occupancy) / self.total_threads
        thieves = [w for w in self.running if self._is_unoccupied(w, mean_us)]
        unoccupied = set(thieves)
        victims = sorted(
            (w for w in self.running if self.ready[w] and w not in unoccupied), key=lambda w: -occupancy[w]
        )
        for victim in victims[:MAX_VICTIMS] if len(thieves) < len(self.running) else ():
            ready = self.ready[victim]
            # Those with the lowest priority would wait longest. The scheduler takes them in no particular order.
            for task in sorted(ready, reverse=True):
                if not thieves:
                    break
                thief = min(thieves, key=occupancy.__getitem__)
                if self._is_worth_stealing(task, thief, victim):
                    ready.remove(task)
                    self.waiting -= 1
                    self._steal(task, thief, victim, now)
                    thieves = [w for w in thieves if w != thief or self._is_unoccupied(w, mean_us)]
            ready.sort()
        if any(self.idle):
            self._want_balance(now + STEAL_EVERY_US / 2)

    def _is_unoccupied(self, worker: int, mean_us: float) -> bool:
        threads = self.setup.threads[worker]
        return self.processing[worker] < threads or self.occupancy[worker] < threads * mean_us / 2

    def _is_worth_stealing(self, task: int, thief: int, victim: int) -> bool:
        mean_us = self.mean_us[self.graph.group[task]]
        move_us = self._bytes_to_move(task, thief) / self.overheads.bandwidth
        if mean_us < MIN_STOLEN_US or (move_us + STEAL_LATENCY_US) / mean_us > MAX_STEAL_RATIO:
            return False
        return self.occupancy[thief] + move_us + mean_us <= self.occupancy[victim] - mean_us / 2

    def _bytes_to_move(self, task: int, worker: int) -> int:
        graph = self.graph
        inputs = graph.inputs[graph.inputs_from[task] : graph.inputs_from[task + 1]]
        return sum(
            graph.nbytes[given]
            for given in inputs
            if self.place[given] != worker and worker not in self.copied.get(given, ())
        )

    def _steal(self, task: int, thief: int, victim: int, now: float) -> None:
        self.processing[victim] -= 1
        self.occupancy[victim] -= self.mean_us[self.graph.group[task]]
        self.stolen += 1
        # The victim is asked first.
        self._assign(task, thief, now + self.overheads.link_us)
