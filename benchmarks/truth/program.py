"""Programs of random shape with a known answer. A seed makes a cluster, a graph of tasks, and none, one or two causes of lost time.

Every choice has a random generator of its own, so that a program with a cause removed is otherwise the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from benchmarks.truth.behaviour import Step

#: Base length of a program, and cores of the machine it is made for.
BASE_S = (1.2, 2.2)
CORES = 2
#: In steps: the port of the server that answers late.
PORT = "port"


@dataclass(frozen=True)
class Planned:
    """One task of a program."""

    number: int
    prefix: str
    steps: tuple[Step, ...]
    inputs: tuple[int, ...] = ()
    nbytes: int = 0
    #: Tasks are submitted batch by batch.
    batch: int = 0
    #: Index of the only worker it may run on.
    worker: int | None = None
    resource: str = ""
    retries: int = 0
    #: Bytes that travel with the task in the graph.
    ballast: int = 0
    #: Number of the group of tasks that are submitted by one task.
    nest: int | None = None


@dataclass(frozen=True)
class Program:
    """A cluster and what runs on it."""

    seed: int
    workers: int
    threads: int
    shape: str
    #: What a task without a cause does: free (uses a core) or sleep.
    base: str
    tasks: tuple[Planned, ...]
    causes: tuple[Cause, ...] = ()
    #: Seconds that the client waits before each batch but the first.
    pause_s: float = 0.0
    #: futures (one call for each task) or graph (one for each batch)
    style: str = "futures"
    #: Modules to load on all workers in advance.
    preload: tuple[str, ...] = ()
    #: Programs beside the cluster that use a core each.
    neighbours: int = 0
    clients: int = 1
    #: Whether tasks are coroutines, which run on the event loop of their worker.
    is_async: bool = False

    @property
    def slots(self) -> int:
        return self.workers * self.threads

    @property
    def base_s(self) -> float:
        """Seconds of all threads that the steps take."""
        return sum(step.seconds for task in self.tasks for step in task.steps)


@dataclass(frozen=True)
class How:
    """How a cause is put into a program."""

    rng: Random
    #: Share of the time that it takes.
    share: float
    #: Whether the advice about it is followed.
    fixed: bool


Inject = Callable[[Program, How], Program]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Cause:
    """A cause of lost time: how to put it into a program, and the rules that may name it."""

    name: str
    rules: frozenset[str]
    inject: Inject
    #: Workers and threads for which it is one.
    clusters: tuple[Shape, ...]
    #: Whether following the advice is part of ``inject``, and saves time.
    has_twin: bool = True
    #: Whether it stands first whatever it costs.
    is_fatal: bool = False


# ---------------------------------------------------------------- shapes

SMALL: tuple[Shape, ...] = ((1, 1), (2, 1), (1, 2))
WIDE: tuple[Shape, ...] = ((2, 2), (4, 1), (1, 4), (3, 1), (3, 2), (2, 3), (2, 4))
ANY = SMALL[1:] + WIDE
NAMES = ("load", "clean", "model", "merge", "score", "write", "parse", "join")


def _plan(rng: Random, steps_s: float, shape: str, base: str, slots: int) -> list[Planned]:
    """Return tasks whose steps take about this many seconds of all threads."""
    names = rng.sample(NAMES, 4)
    variant = rng.randrange(4)
    count = max(3 * slots, rng.randrange(12, 60)) if shape != "shuffle" else rng.randrange(10, 20)
    each = steps_s / count / {"tree": 1.07, "layers": 1.8, "shuffle": 1.5, "chains": 1.9}.get(shape, 1.0)

    def body(scale: float = 1.0) -> tuple[Step, ...]:
        return (Step(base, each * scale * rng.uniform(0.8, 1.2), variant),)

    tasks = [Planned(n, names[0], body(), nbytes=rng.choice((10, 1_000, 50_000))) for n in range(count)]

    for prefix, inputs, scale in _later_layers(shape, count, names):
        tasks.append(Planned(len(tasks), prefix, body(scale), inputs))
    if shape == "nested":
        tasks = [replace(task, nest=task.number % 3) for task in tasks]
    return tasks


def _later_layers(shape: str, count: int, names: list[str]) -> Iterator[tuple[str, tuple[int, ...], float]]:
    """Yield prefix, inputs and scale of the tasks after the first ``count``, in the order of their numbers."""
    number = count
    if shape == "tree":
        level = list(range(count))
        while len(level) > 1:
            groups = [tuple(level[n : n + 4]) for n in range(0, len(level), 4)]
            yield from ((names[1], group, 0.2) for group in groups)
            level = list(range(number, number + len(groups)))
            number += len(groups)
    elif shape == "layers":
        for name in names[1:3]:
            yield from ((name, (n,), 0.4) for n in range(number - count, number))
            number += count
    elif shape == "chains":
        for chain in range(count):
            for n, name in enumerate((*names[1:], *names[1:])):
                yield name, (chain if n == 0 else number - 1,), 0.15
                number += 1
    elif shape == "shuffle":
        yield from ((names[1], tuple(range(count)), 0.5) for _ in range(count))


# ---------------------------------------------------------------- causes


def _spread(program: Program, rng: Random, total_s: float, make: Callable[[float], Step]) -> Program:
    """Add a step to the tasks of the first prefix, with this many seconds in total."""
    first = program.tasks[0].prefix
    mine = [task for task in program.tasks if task.prefix == first]
    tasks = tuple(
        replace(task, steps=(*task.steps, make(total_s / len(mine) * rng.uniform(0.7, 1.3))))
        if task.prefix == first
        else task
        for task in program.tasks
    )
    return replace(program, tasks=tasks)


def _waiting(kind: str, variant: int = 0, at: str = "") -> Inject:
    """Return a cause that lets tasks wait. Without it, they do not."""

    def inject(program: Program, how: How) -> Program:
        total = how.share / (1 - how.share) * program.base_s
        return _spread(program, how.rng, total, lambda s: Step(kind, 0.001 if how.fixed else s, variant, at))

    return inject


def _lock(program: Program, how: How) -> Program:
    variant = how.rng.choice((0, 0, 1, 2) if program.workers == 1 else (0, 0, 1))
    total = how.rng.uniform(1.2, 2.2)
    kind = "sleep" if how.fixed else "lock"
    return _spread(program, how.rng, total, lambda s: Step(kind, s, variant, "shared"))


def _kind(kind: str) -> Inject:
    """Return a cause that lies in the code of all tasks; without it they do a twentieth of the work."""

    def inject(program: Program, how: How) -> Program:
        variant = how.rng.randrange(5)
        tasks = tuple(
            replace(
                task, steps=tuple(Step(kind, step.seconds / (20 if how.fixed else 1), variant) for step in task.steps)
            )
            for task in program.tasks
        )
        return replace(program, tasks=tasks, base=kind)

    return inject


def _gil(program: Program, how: How) -> Program:
    kind = how.rng.choice(("held", "loop"))
    made = _kind(kind)(program, replace(how, fixed=False))
    return replace(made, workers=CORES, threads=1) if how.fixed else made


def _busy(program: Program, how: How) -> Program:
    variant = how.rng.randrange(4)
    tasks = tuple(
        replace(task, steps=tuple(Step("free", step.seconds / 2, variant) for step in task.steps))
        for task in program.tasks
    )
    made = replace(program, tasks=tasks, base="free")
    return replace(made, workers=CORES, threads=1) if how.fixed else made


def _neighbours(program: Program, how: How) -> Program:
    return replace(program, neighbours=0 if how.fixed else how.rng.choice((2, 3)))


def _straggler(program: Program, how: How) -> Program:
    long_s = max(1.5, how.share / (1 - how.share) * program.base_s / program.slots)
    mine = [task for task in program.tasks if task.prefix == program.tasks[0].prefix]
    kind, variant = mine[0].steps[0].kind, mine[0].steps[0].variant
    if not how.fixed:
        chosen = how.rng.choice(mine[len(mine) // 2 :]).number
        return _with_steps(program, chosen, (Step(kind, long_s, variant),))
    # The same work in as many pieces as threads.
    first = len(program.tasks)
    pieces = tuple(
        Planned(first + n, mine[0].prefix, (Step(kind, long_s / program.slots, variant),)) for n in range(program.slots)
    )
    return replace(program, tasks=(*program.tasks, *pieces))


def _with_steps(program: Program, number: int, steps: tuple[Step, ...]) -> Program:
    tasks = tuple(replace(t, steps=steps) if t.number == number else t for t in program.tasks)
    return replace(program, tasks=tasks)


def _serial(program: Program, how: How) -> Program:
    long_s = max(1.5, how.share / (1 - how.share) * program.base_s / program.slots)
    first, last = len(program.tasks), tuple(task.number for task in program.tasks)
    pieces = program.slots if how.fixed else 1
    step = program.tasks[0].steps[0]
    added = tuple(
        Planned(first + n, "total", (Step(step.kind, long_s / pieces, step.variant),), last) for n in range(pieces)
    )
    return replace(program, tasks=(*program.tasks, *added))


def _few(program: Program, how: How) -> Program:
    count = program.slots if how.fixed else max(1, program.slots // how.rng.choice((2, 3)))
    step = program.tasks[0].steps[0]
    total = how.rng.uniform(2.0, 3.0) * max(1, program.slots // 3)
    tasks = tuple(Planned(n, "model", (Step(step.kind, total / count, step.variant),)) for n in range(count))
    return replace(program, tasks=tasks, shape="map")


def _pauses(program: Program, how: How) -> Program:
    batches = how.rng.choice((3, 4))
    size = -(-len(program.tasks) // batches)
    wall_s = program.base_s / min(program.slots, CORES if program.base != "sleep" else program.slots)
    tasks = tuple(replace(task, batch=task.number // size) for task in program.tasks)
    pause_s = 0.0 if how.fixed else max(0.4, how.share / (1 - how.share) * wall_s / (batches - 1))
    return replace(program, tasks=tasks, pause_s=pause_s)


def _pinned(program: Program, how: How) -> Program:
    at = None if how.fixed else 0
    first = program.tasks[0].prefix
    return replace(program, tasks=tuple(replace(t, worker=at) if t.prefix == first else t for t in program.tasks))


def _short(program: Program, how: How) -> Program:
    count, each = how.rng.randrange(2_000, 3_500), how.rng.uniform(0.0002, 0.001)
    batch = 50 if how.fixed else 1
    tasks = tuple(Planned(n, "tiny", (Step("loop", each * batch, 0),)) for n in range(count // batch))
    return replace(program, tasks=tasks, shape="map", style="graph")


def _warm(program: Program, how: How) -> Program:
    load_s = max(1.2, how.share / (1 - how.share) * program.base_s / program.slots)
    first = program.tasks[0].prefix
    tasks = tuple(
        replace(t, steps=(Step("load", load_s, 0, "model"), *t.steps)) if t.prefix == first else t
        for t in program.tasks
    )
    return replace(program, tasks=tasks, preload=("model",) if how.fixed else ())


def _retried(program: Program, how: How) -> Program:
    first = program.tasks[0].prefix
    if how.fixed:
        return program
    tasks = tuple(
        replace(t, steps=(*t.steps, Step("fail first")), retries=2) if t.prefix == first else t for t in program.tasks
    )
    return replace(program, tasks=tasks)


def _failing(retries: int) -> Inject:
    def inject(program: Program, how: How) -> Program:
        first = [task for task in program.tasks if task.prefix == program.tasks[0].prefix]
        chosen = {task.number for task in how.rng.sample(first, how.rng.randrange(1, 4))}
        tasks = tuple(
            replace(t, steps=(*t.steps, Step("fail")), retries=retries) if t.number in chosen else t
            for t in program.tasks
        )
        return replace(program, tasks=tasks)

    return inject


def _killed(program: Program, _how: How) -> Program:
    task = program.tasks[len(program.tasks) // 2]
    return _with_steps(program, task.number, (*task.steps, Step("exit", 0.2)))


def _graph(program: Program, how: How) -> Program:
    nbytes = 0 if how.fixed else how.rng.randrange(150, 300) * 1_000_000 // min(len(program.tasks), 20)
    tasks = tuple(replace(t, ballast=nbytes) if t.number < 20 else t for t in program.tasks)
    return replace(program, tasks=tasks, style="graph")


def _missing(program: Program, _how: How) -> Program:
    added = Planned(len(program.tasks), "train", (Step("sleep", 0.1),), resource="GPU")
    return replace(program, tasks=(*program.tasks, added))


def _moving(program: Program, how: How) -> Program:
    """Make blocks on every worker, and use all of them on each."""
    count = 2 * program.workers
    nbytes = 1_000 if how.fixed else how.rng.randrange(60, 110) * 1_000_000
    tasks = [
        Planned(n, "load", (Step("sleep", 0.05),), nbytes=nbytes, worker=n % program.workers) for n in range(count)
    ]
    tasks += [
        Planned(count + n, "join", (Step("sleep", 0.05),), tuple(range(count)), worker=n % program.workers)
        for n in range(program.workers)
    ]
    return replace(program, tasks=tuple(tasks), shape="shuffle", style="futures")


CAUSES: tuple[Cause, ...] = (
    Cause("locks", frozenset({"locks"}), _lock, ((2, 2), (1, 4), (2, 1), (4, 1), (3, 2))),
    Cause("network", frozenset({"network-reads"}), _waiting("http", at=PORT), ANY),
    Cause("files", frozenset({"file-reads"}), _waiting("file"), ANY),
    Cause("programs", frozenset({"subprocesses"}), _waiting("program"), ANY),
    Cause("pool that computes", frozenset({"library-threads"}), _waiting("pool", 0), SMALL, has_twin=False),
    Cause("pool that reads", frozenset({"library-threads", "network-reads"}), _waiting("pool", 1, PORT), ANY),
    Cause("pool that sleeps", frozenset({"library-threads", "off-cpu"}), _waiting("pool", 2), ANY),
    Cause("BLAS threads", frozenset({"library-threads", "busy-hosts"}), _kind("blas"), ((2, 2), (2, 1), (1, 2)), has_twin=False),
    Cause("GIL", frozenset({"gil", "python-loops"}), _gil, ((1, 4), (1, 2))),
    Cause("full host", frozenset({"busy-hosts"}), _busy, ((4, 1), (2, 3), (2, 4), (3, 2))),
    Cause("other programs", frozenset({"busy-hosts"}), _neighbours, SMALL),
    Cause("loops", frozenset({"python-loops"}), _kind("loop"), ((1, 1), (2, 1))),
    Cause("straggler", frozenset({"stragglers", "too-few-tasks"}), _straggler, ANY),
    Cause("serial section", frozenset({"serial-sections", "too-few-tasks"}), _serial, ANY),
    Cause("few tasks", frozenset({"too-few-tasks", "stragglers", "serial-sections"}), _few, WIDE),
    Cause("pauses of the client", frozenset({"nothing-submitted"}), _pauses, ANY),
    Cause("pinned tasks", frozenset({"pinned-work", "unbalanced-work"}), _pinned, ((2, 1), (3, 1), (2, 2), (4, 1))),
    Cause("short tasks", frozenset({"short-tasks"}), _short, ANY),
    Cause("first tasks", frozenset({"warm-up"}), _warm, ANY),
    Cause("retries", frozenset({"retried-failures"}), _retried, ANY),
    Cause("failures", frozenset({"failed-tasks"}), _failing(0), ANY, has_twin=False, is_fatal=True),
    Cause("retries in vain", frozenset({"failed-tasks", "retries-in-vain"}), _failing(2), ANY, has_twin=False, is_fatal=True),
    Cause("killed worker", frozenset({"lost-workers"}), _killed, ((2, 1), (2, 2), (3, 1), (4, 1)), has_twin=False),
    Cause("large graph", frozenset({"large-graphs"}), _graph, SMALL),
    Cause("missing resource", frozenset({"unrunnable-tasks"}), _missing, ANY, has_twin=False),
    Cause("moved data", frozenset({"transfers", "slow-starts"}), _moving, ((2, 1), (3, 1), (2, 2))),
)  # fmt: skip
#: Causes that make all tasks anew: nothing else can be put into such a program before them.
REPLACING = frozenset({"few tasks", "short tasks", "moved data", "loops", "GIL", "full host", "BLAS threads"})
#: Causes whose number of tasks or kind of work cannot have another one beside it.
ALONE = frozenset({"short tasks", "moved data", "missing resource", "few tasks", "large graph"})
#: They change tasks, or wait for tasks, that the client of a nested program does not submit itself.
NAMES_TASKS = frozenset(
    {"pinned tasks", "retries", "failures", "retries in vain", "killed worker", "large graph", "serial section"}
)


# ---------------------------------------------------------------- programs


def make(seed: int, *, fixed: str = "", workers: int = 0) -> Program:
    """Return the program of a seed; ``fixed`` names a cause whose advice is followed, ``workers`` another number of workers."""
    causes = _choose(Random(f"{seed}/causes"))
    rng = Random(f"{seed}/shape")
    fitting = [one for one in ANY + SMALL[:1] if all(one in cause.clusters for cause in causes)]
    size = rng.choice(fitting)
    needs_sleep = size[0] * size[1] > CORES
    base = "sleep" if needs_sleep or rng.random() < 0.2 else "free"
    shape = rng.choices(("map", "tree", "layers", "chains", "shuffle", "nested"), (4, 2, 2, 1, 1, 1))[0]
    if shape == "nested" and NAMES_TASKS & {cause.name for cause in causes}:
        shape = "map"
    slots = size[0] * size[1]
    steps_s = rng.uniform(*BASE_S) * (min(slots, CORES) if base == "free" else slots)
    tasks = tuple(_plan(rng, steps_s, shape, base, slots))
    style = rng.choice(("futures", "graph"))
    program = Program(seed, *size, shape, base, tasks, causes, style=style, clients=rng.choice((1, 1, 1, 2)))
    for cause in causes:
        mine = Random(f"{seed}/{cause.name}")
        program = cause.inject(program, How(mine, mine.uniform(0.25, 0.65), cause.name == fixed))
    if any(task.retries or task.worker is not None or task.resource or task.nest is not None for task in program.tasks):
        program = replace(program, style="futures")
    kinds = {step.kind for task in program.tasks for step in task.steps}
    if kinds == {"sleep"} and program.style == "futures" and shape != "nested" and rng.random() < 0.3:
        program = replace(program, is_async=True)
    # A client cannot use the results of another one.
    if any(task.inputs for task in program.tasks):
        program = replace(program, clients=1)
    return replace(program, workers=workers) if workers else program


def _choose(rng: Random) -> tuple[Cause, ...]:
    """Return none, one or two causes that fit together; those that replace all tasks come first."""
    count = rng.choices((0, 1, 2), (15, 60, 25))[0]
    chosen: list[Cause] = []
    while len(chosen) < count:
        one = rng.choice(CAUSES)
        if chosen and chosen[0].name in ALONE:
            break
        if one in chosen or (chosen and one.name in ALONE):
            continue
        if chosen and {one.name, chosen[0].name} <= REPLACING:
            continue
        if set(one.clusters) & set(chosen[0].clusters if chosen else one.clusters):
            chosen.append(one)
    return tuple(sorted(chosen, key=lambda cause: cause.name not in REPLACING))


def describe(program: Program) -> str:
    """Return a program in one line."""
    causes = " and ".join(cause.name for cause in program.causes) or "no cause"
    return (
        f"{program.workers} × {program.threads}, {len(program.tasks)} tasks, {program.shape}, {program.base}, {causes}"
    )
