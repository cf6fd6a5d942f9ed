"""What a report holds: the contract between Python, which computes every number, and the page, which shows it.

``scripts/gen-types`` writes ``web/src/api/schema.gen.ts`` from these definitions. Times ending in ``_us`` are whole microseconds
since the epoch on the scheduler's clock unless they are lengths; a length says so. Large columns are ``Block``s: binary, beside
the JSON. Where the reader selects a stretch of time, the page adds up the bins of a cube and nothing else.
"""

from __future__ import annotations

from typing import Literal, TypedDict

#: Changes when a reader of the old one would misread the new one.
SCHEMA = 1

Category = Literal["cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle"]
Status = Literal["running", "finished", "erred", "lost", "idle"]
DType = Literal["u8", "u16", "u32", "f32", "f64", "mini", "utf8"]

#: The order in which parts of thread time are always shown. ``failed`` is work that was thrown away: failed, killed, recomputed.
CATEGORIES: tuple[Category, ...] = ("cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle")


class Block(TypedDict):
    """A binary column: zlib over the byte planes of little-endian values (``utf8``: over lines of text).

    ``mini`` are whole numbers to three digits in 16 bits: codes below 512 are the number, others are 256 plus their low byte, times
    two to the power of their high byte less one.
    """

    block: str
    dtype: DType
    length: int


class Answer(TypedDict):
    """The first thing a reader sees: what happened, and why, in words."""

    status: Status
    headline: str
    reason: str


class Cost(TypedDict):
    """Dollars, estimated at the prices the recording was made with."""

    total: float
    idle: float
    formula: str


class Totals(TypedDict):
    """The whole run in numbers; lengths in microseconds."""

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
    parallelism: float
    cost: Cost | None


class Share(TypedDict):
    """A part of all thread time. The parts add up to ``Totals.thread_us``."""

    category: Category
    label: str
    us: int


class Gain(TypedDict):
    """What could be saved at most: time of the run or of all threads, the part of it, and what was added up."""

    us: int
    of: Literal["run", "threads"]
    share: float
    how: str


class Finding(TypedDict):
    """A fact worth knowing and what follows from it; ``gain`` is missing where it cannot be said."""

    kind: str
    title: str
    evidence: str
    advice: str
    view: str
    start_us: int
    stop_us: int
    gain: Gain | None


class Prefix(TypedDict):
    """All executions of one task prefix, the longest total first; lengths in microseconds."""

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


class Worker(TypedDict):
    """One worker's life."""

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
    utilisation: float
    peak_memory: int
    spilled: int
    processing: list[str]
    processing_count: int
    lost_count: int
    recomputed_us: int


class Computation(TypedDict):
    """One compute, persist or submit wave with the code that asked for it."""

    computation: str
    state: str
    start_us: int
    stop_us: int
    tasks: int
    errors: int
    span: str
    code: str
    code_line: int
    code_file: str


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
    durations_us: dict[str, int]
    dominant: Category
    dependencies: list[int]


class Span(TypedDict):
    """A distributed.span."""

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
    """Something that happened, or a log line (``kind`` is then its level)."""

    time_us: int
    source: str
    kind: str
    worker: str
    text: str
    repeats: int


class Step(TypedDict):
    """One execution on the critical path; ``wait_us`` passed between its last input and its start."""

    key: str
    prefix: str
    worker: str
    start_us: int
    stop_us: int
    wait_us: int


class CriticalPath(TypedDict):
    """The chain of executions that the end had to wait for; lengths in microseconds."""

    known: bool
    length_us: int
    compute_us: int
    wait_us: int
    bound_us: int
    by_prefix: list[tuple[str, int]]
    steps: list[Step]
    of: int


class Bins(TypedDict):
    """The time axis of all cubes: ``count`` bins of ``width_us`` from the start of the report."""

    count: int
    width_us: int


class Cube(TypedDict):
    """Sums by key and bin, one row per cell that is not empty.

    ``keys`` names the key columns in order with the values that their codes stand for; ``columns`` has a block of codes for each,
    a block ``bin`` and a block for each measure. Where there are very many keys, ``step`` bins are taken together, and a row has
    the first of them.
    """

    keys: dict[str, list[str]]
    measures: list[str]
    step: int
    rows: int
    columns: dict[str, Block]


class Lane(TypedDict):
    """One thread of a worker (a position in the report's workers); its bars are ``first`` to ``first + count``."""

    worker: int
    thread: int
    first: int
    count: int
    tasks: int


class Stream(TypedDict):
    """The task stream: bars sorted by lane and start.

    Columns of bars: ``gap`` (ticks since the end of the bar before in its lane, of the first since the start of the report;
    zigzag), ``duration`` (microseconds), ``action`` (position in ``actions``). Action 0 is the execution itself, and the bars of
    action 0 are the tasks 0, 1, 2 … in order. Other bars have a value in ``owner``: the task they belong to, counted from the next
    one (zigzag).

    Columns of tasks: ``prefix`` (position in the report's prefixes), ``status``, ``type``, ``computation`` (positions; of
    computations one more than that, 0 is none), ``nbytes``, ``wait`` (ticks between assignment and start), ``queue`` (ticks between
    becoming runnable and assignment).

    Keys are texts with numbers taken out: ``template`` (position in ``templates``; where there is no such column the prefix is the
    position) and ``number0``, ``number1`` … for each U+0000 in it. Where ``templates`` is empty, ``key`` (utf8) has a line a task,
    JSON where a key has line breaks.
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
    """Samples of workers on the grid of the bins, a row a worker, NaN where there is none; one block a measure."""

    workers: list[str]
    measures: dict[str, Block]


class Flame(TypedDict):
    """Stacks as a tree of nodes (parents before children; a parent is a node plus one, 0 is none) and samples over their ends.

    ``frames`` are file, function, line and whose code it is. The cube's ``stack`` codes are nodes. ``seconds_per_sample`` scales
    counts of ``compute`` samples to the compute time that was recorded.
    """

    frames: list[tuple[str, str, int, Literal["user", "lib", "native", "dask"]]]
    parents: Block
    nodes: Block
    cube: Cube
    seconds_per_sample: float
    got: int
    expected: int


class Edges(TypedDict):
    """Dependencies between tasks of the stream, in the order of the tasks; ``of`` counts all that were recorded.

    ``tasks`` are differences to the row before, ``dependencies`` the distance from the task back to its dependency (zigzag).
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
    """Rows of a table of the recording; ``rows`` of ``of`` are here. ``data`` (utf8) has a line a column: a JSON array."""

    name: str
    row: str
    rows: int
    of: int
    dropped: int
    columns: list[ReportColumn]
    data: Block


class Fact(TypedDict):
    """A label and its text, for lists of facts."""

    label: str
    text: str


class Report(TypedDict):
    """Everything.

    ``view`` is what is shown first, ``calling_code`` the code that asked for the report, ``failure`` the traceback of the exception
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
    computations: list[Computation]
    groups: list[Group]
    spans: list[Span]
    errors: list[Error]
    events: list[Event]
    events_of: int
    critical_path: CriticalPath
    bins: Bins
    time_by_prefix: Cube
    time_by_worker: Cube
    time_by_span: Cube
    counts: Cube
    activities: Cube
    transfers: Cube
    series: Series
    flame: Flame
    stream: Stream
    edges: Edges
    tables: list[ReportTable]
