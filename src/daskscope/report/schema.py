"""The schema of a report: the contract between Python, which computes every number, and the page, which shows it.

``scripts/gen-types`` writes ``web/src/api/schema.gen.ts`` from these definitions. Values ending in ``_us`` are whole
microseconds: times since the epoch on the scheduler's clock, or durations where the docstring says so. Large columns are
binary ``Block``s beside the JSON. For a time selection the page adds up the bins of a cube and computes nothing else.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from daskscope.model.states import RunState
from daskscope.report.coffea_schema import CoffeaRun

#: Incremented when older readers would misread a report.
SCHEMA = 2

Category = Literal["cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle"]
DType = Literal["u8", "u16", "u32", "f32", "f64", "mini", "utf8"]

#: Categories of thread time in display order. ``failed`` is wasted work: failed, killed or recomputed.
CATEGORIES: tuple[Category, ...] = ("cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle")


class Block(TypedDict):
    """A binary column: zlib over the byte planes of little-endian values (``utf8``: over lines of text).

    ``mini`` are whole numbers to three digits in 16 bits: a code below 512 is the number itself, others are 256 plus the low
    byte, times two to the power of the high byte less one.
    """

    block: str
    dtype: DType
    length: int


class Answer(TypedDict):
    """The headline: how the run ended, and why."""

    state: RunState
    headline: str
    reason: str


class Cost(TypedDict):
    """Dollars, estimated at the prices in the recording."""

    total: float
    idle: float
    formula: str


class Totals(TypedDict):
    """Totals of the whole run; durations in microseconds."""

    duration_us: int
    tasks: int
    errors: int
    retries: int
    killed: int
    recomputed: int
    workers: int
    workers_lost: int
    threads: int
    thread_us: int
    compute_us: int
    idle_us: int
    fully_idle_us: int
    nbytes: int
    peak_memory: int
    memory_limit: int
    spilled: int
    transferred: int
    #: Of them, bytes that a P2P shuffle sent.
    shuffled: int
    parallelism: float
    cost: Cost | None


class Reason(TypedDict):
    """A reason for waiting or idle thread time."""

    reason: str
    label: str
    us: int


class Share(TypedDict):
    """A category of thread time. All of them add up to ``Totals.thread_us``."""

    category: Category
    label: str
    us: int
    #: Why tasks waited or threads were idle; adds up to ``us``. Empty for other categories.
    reasons: list[Reason]


class Gain(TypedDict):
    """The estimated saving, an upper bound: wall time or thread time, its share, and what was added up."""

    us: int
    of: Literal["run", "threads"]
    share: float
    how: str
    #: The same as wall time: if spread evenly over the threads, and if all of it delays the end of the run.
    wall_low_us: int
    wall_high_us: int
    #: Dollars that the cluster costs in the most wall time saved; 0 if the recording has no prices.
    cost_high: float


class Finding(TypedDict):
    """A finding with its evidence and a suggestion; ``gain`` is null if it cannot be estimated."""

    kind: str
    title: str
    evidence: str
    advice: str
    view: str
    start_us: int
    stop_us: int
    gain: Gain | None
    #: ID of the rule.
    rule: str


class Prefix(TypedDict):
    """All executions of one task prefix, longest total first; durations in microseconds.

    ``order`` is its position in the order in which prefixes first ran. Colours follow it, while the run goes on and later.
    """

    prefix: str
    count: int
    total_us: int
    mean_us: int
    std_us: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int
    nbytes: int
    peak_memory: int
    errors: int
    retries: int
    killed: int
    recomputed_us: int
    intervals_us: dict[str, int]
    order: int


class Worker(TypedDict):
    """One worker from joining to leaving."""

    worker: str
    name: str
    host: str
    threads: int
    memory_limit: int
    start_us: int
    stop_us: int
    verdict: str
    evidence: str
    tasks: int
    busy_us: int
    #: Share of its thread time while it was up that was not idle; the same for all workers that had its address.
    busy_share: float
    peak_memory: int
    #: When the peak was first measured; 0 if it was not.
    peak_us: int
    spilled: int
    processing: list[str]
    processing_count: int
    lost_count: int
    recomputed_us: int


class WorkerPeriod(TypedDict):
    """Time in which a connected worker did not take tasks: it was paused, or had just joined."""

    worker: str
    state: Literal["paused", "starting"]
    start_us: int
    stop_us: int


class Computation(TypedDict):
    """One ``compute()``, ``persist()`` or ``submit()`` call, with its calling code."""

    computation: str
    state: RunState
    start_us: int
    stop_us: int
    tasks: int
    #: Tasks that raised an exception and were not retried.
    errors: int
    span: str
    code: str
    code_line: int
    code_file: str
    #: Time from the arrival of its graphs at the scheduler until their tasks existed; 0 if not known.
    graph_us: int


class Group(TypedDict):
    """A task group; ``dependencies`` are positions in the list of groups."""

    group: str
    prefix: str
    computation: str
    span: str
    start_us: int
    stop_us: int
    tasks: int
    nbytes: int
    errors: int
    #: By category.
    durations_us: dict[str, int]
    dominant: Category
    dependencies: list[int]


class Span(TypedDict):
    """A span of ``distributed.span``."""

    span: str
    name: str
    parent: str
    start_us: int
    stop_us: int


class Error(TypedDict):
    """All failures with one fingerprint."""

    fingerprint: str
    type: str
    message: str
    traceback: str
    count: int
    retried: int
    first_us: int
    last_us: int
    prefixes: list[str]
    workers: list[str]
    keys: list[str]


class Event(TypedDict):
    """An event, or a log line, whose ``kind`` is its level."""

    time_us: int
    source: str
    kind: str
    worker: str
    text: str
    repeats: int


class Step(TypedDict):
    """One execution on the critical path.

    ``wait_us`` is the time since the end of the step before: queued at the scheduler, fetching inputs, waiting for
    a busy thread, and the rest. With ``same_thread`` the step before did not produce an input, but occupied the thread.
    ``task`` is its number in the stream, -1 if it was left out.
    """

    task: int
    key: str
    prefix: str
    worker: str
    start_us: int
    stop_us: int
    wait_us: int
    queue_us: int
    transfer_us: int
    busy_us: int
    scheduler_us: int
    same_thread: bool


class CriticalPath(TypedDict):
    """The chain of executions that determined when a computation ended, the longest one; durations in microseconds."""

    known: bool
    computation: str
    length_us: int
    compute_us: int
    wait_us: int
    queue_us: int
    transfer_us: int
    busy_us: int
    scheduler_us: int
    bound_us: int
    by_prefix: list[tuple[str, int]]
    steps: list[Step]
    of: int


class Bins(TypedDict):
    """The time axis of all cubes: ``count`` bins of ``width_us``, beginning at the start of the report."""

    count: int
    width_us: int


class Cube(TypedDict):
    """Sums by key and bin, one row per non-empty cell.

    ``keys`` has the key columns in order, each with the texts of its codes; ``columns`` has a block of codes for each, a block
    ``bin`` and a block for each measure. If there are very many keys, ``step`` bins are merged, and a row has the first of them.
    """

    keys: dict[str, list[str]]
    measures: list[str]
    step: int
    rows: int
    columns: dict[str, Block]


class Lane(TypedDict):
    """One thread of a worker (its position in the report's workers); its bars are ``first`` to ``first + count``."""

    worker: int
    thread: int
    first: int
    count: int
    tasks: int


class Stream(TypedDict):
    """The task stream: bars sorted by lane and start.

    Columns of bars: ``gap`` (ticks since the end of the previous bar in the lane, or since the start of the report; zigzag),
    ``duration`` (microseconds), ``action`` (position in ``actions``). Action 0 is the execution itself, and the bars of action 0
    are the tasks 0, 1, 2 … in order. Each other bar has a value in ``owner``: its task, counted from the next task (zigzag).

    Columns of tasks: ``prefix`` (position in the report's prefixes), ``status`` and ``type`` (positions), ``computation``
    (position plus one; 0 means none), ``nbytes``, ``wait`` (ticks between assignment and start), ``queue`` (ticks between becoming
    runnable and assignment).

    Keys are templates and numbers: ``template`` (position in ``templates``; without this column the prefix is the position) and
    ``number0``, ``number1`` … for each U+0000 in the template. If ``templates`` is empty, ``key`` (utf8) has a line per task, as
    JSON if the key has line breaks.
    """

    tick_us: int
    lanes: list[Lane]
    actions: list[str]
    statuses: list[str]
    types: list[str]
    bars: int
    tasks: int
    of: int
    templates: list[str]
    columns: dict[str, Block]


class Series(TypedDict):
    """Samples by worker (row) and bin (column), NaN without a sample; one block per measure."""

    workers: list[str]
    measures: dict[str, Block]


class Flame(TypedDict):
    """Stacks as a tree of nodes (parents before children; a parent is a node plus one, 0 means none), and samples by node.

    ``frames`` are file, function, line and owner of the code. The cube's ``stack`` codes are nodes. ``seconds_per_sample``
    scales counts of ``compute`` samples to the recorded compute time of their prefix, by its code; it is empty without such
    samples. ``got`` of ``expected`` samples were taken. ``note`` says why there are no stacks of event loops.
    """

    frames: list[tuple[str, str, int, Literal["user", "lib", "native", "dask"]]]
    parents: Block
    nodes: Block
    cube: Cube
    seconds_per_sample: list[float]
    got: int
    expected: int
    note: str


class Edges(TypedDict):
    """Dependencies between tasks of the stream, in the order of the tasks; ``of`` is the number recorded.

    ``tasks`` are differences to the previous row, ``dependencies`` the distance from the task back to its dependency (zigzag).
    """

    tasks: Block
    dependencies: Block
    rows: int
    of: int


class ReportColumn(TypedDict):
    """A column of a table of the recording."""

    name: str
    kind: Literal["int", "float", "str", "time", "list"]
    meaning: str


class ReportTable(TypedDict):
    """The first ``rows`` of ``of`` rows of a table of the recording. ``data`` (utf8) has a JSON array per column, one per line."""

    name: str
    row: str
    rows: int
    of: int
    dropped: int
    columns: list[ReportColumn]
    data: Block


class Fact(TypedDict):
    """A labelled fact."""

    label: str
    text: str


class Report(TypedDict):
    """The whole report.

    ``view`` is the view shown first, ``calling_code`` the code around the report, ``failure`` the traceback of the exception
    that ended its block.
    """

    schema: int
    generator: str
    title: str
    made_us: int
    start_us: int
    stop_us: int
    answer: Answer
    totals: Totals
    split: list[Share]
    findings: list[Finding]
    facts: list[Fact]
    statement: str
    complete: bool
    view: str
    calling_code: str
    failure: str
    prefixes: list[Prefix]
    workers: list[Worker]
    worker_periods: list[WorkerPeriod]
    computations: list[Computation]
    groups: list[Group]
    spans: list[Span]
    errors: list[Error]
    events: list[Event]
    events_of: int
    critical_path: CriticalPath
    #: The paths of the other computations, longest first.
    other_paths: list[CriticalPath]
    bins: Bins
    time_by_prefix: Cube
    time_by_worker: Cube
    time_by_span: Cube
    idle_by_reason: Cube
    counts: Cube
    activities: Cube
    transfers: Cube
    series: Series
    scheduler: Series
    flame: Flame
    stream: Stream
    edges: Edges
    coffea: list[CoffeaRun]
    tables: list[ReportTable]
