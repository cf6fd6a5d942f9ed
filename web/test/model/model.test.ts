import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Report, Worker } from "../../src/api/schema.gen";
import type { Source } from "../../src/api/source";
import { isLost, Model } from "../../src/model/model";
import type { TaskStream } from "../../src/model/stream";
import { loadNeighbours } from "../../src/model/task-edges";
import { fakeBrowser } from "../fake-browser";

const worker = (over: Partial<Worker>): Worker =>
  ({ worker: "", name: "", verdict: "", start_us: 1_000_000, stop_us: 0, ...over }) as Worker;

function makeModel(over: Partial<Report> = {}): Model {
  const report = {
    start_us: 1_000_000,
    stop_us: 3_000_000,
    view: "overview",
    bins: { width_us: 10_000, count: 200 },
    stream: { bars: 0 },
    prefixes: Array.from({ length: 14 }, (_, i) => ({ prefix: `p${i}`, order: 13 - i })),
    workers: [
      worker({ worker: "tcp://10.0.0.1:1", name: "SLURMCluster-1", stop_us: 2_000_000 }),
      worker({ worker: "tcp://10.0.0.1:2", name: "SLURMCluster-2" }),
    ],
    edges: { rows: 0 },
    ...over,
  } as unknown as Report;
  const source = { raw: () => Promise.reject(new Error("no columns")) } as unknown as Source;
  return new Model(report, source, { painted: Promise.resolve() } as unknown as TaskStream);
}

beforeEach(() => void fakeBrowser("/report.html"));
afterEach(() => void vi.unstubAllGlobals());

describe("time", () => {
  test("the axis covers the run", () => {
    expect(makeModel().axis).toEqual({ length: 2_000_000, width: 10_000, bins: 200 });
  });

  test("an empty run has a length of 1 µs, so that nothing is divided by zero", () => {
    expect(makeModel({ stop_us: 1_000_000 }).axis.length).toBe(1);
  });

  test("times count from the start of the run", () => expect(makeModel().since(1_500_000)).toBe(500_000));

  test("workers that are still connected end with the report", () => {
    const model = makeModel();
    expect(model.report.workers.map((w) => model.stopOf(w))).toEqual([1_000_000, 2_000_000]);
    expect(model.connectedIn(0, 500_000)).toBe(2);
    expect(model.connectedIn(1_500_000, 2_000_000)).toBe(1);
  });
});

describe("the last bin of a worker", () => {
  test("is when it left", () => expect(makeModel().lastBin("tcp://10.0.0.1:1")).toBe(100));
  test("is not known while it is connected", () => expect(makeModel().lastBin("tcp://10.0.0.1:2")).toBe(-1));
  test("belongs to the last of several workers at one address", () => {
    const at = (stop_us: number) => worker({ worker: "a", stop_us });
    expect(makeModel({ workers: [at(1_500_000), at(2_000_000)] }).lastBin("a")).toBe(100);
    expect(makeModel({ workers: [at(1_500_000), at(0)] }).lastBin("a")).toBe(-1);
    expect(makeModel({ workers: [at(0), at(1_500_000)] }).lastBin("a")).toBe(-1);
  });
});

describe("the first view", () => {
  test("it comes from the report", () => expect(makeModel({ view: "memory" }).nav.state.view).toBe("memory"));

  test("an unknown view is the overview", () => {
    expect(makeModel({ view: "nonsense" }).nav.state.view).toBe("overview");
  });
});

describe("colours of prefixes", () => {
  test("they follow the order in which prefixes first ran, and not their time", () => {
    expect(makeModel().colour("p11")).toBe("--cat-3");
    expect(makeModel().colour("p2")).toBe("--cat-12");
    expect(makeModel().colour("p1"), "the thirteenth begins again").toBe("--cat-1");
    expect(makeModel().rankColours.slice(0, 3)).toEqual(["--cat-2", "--cat-1", "--cat-12"]);
  });

  test("two of the longest prefixes never have one colour", () => {
    // The third ran thirteenth, which is the colour of the first.
    const order = new Map([
      ["p0", 0],
      ["p1", 1],
      ["p2", 12],
    ]);
    const model = new Model(makeModel().report, {} as Source, {} as TaskStream, false, order);
    expect([model.colour("p0"), model.colour("p1")]).toEqual(["--cat-1", "--cat-2"]);
    expect(new Set(model.rankColours).size).toBe(12);
  });

  test("a computation has the colours of its cluster", () => {
    const order = new Map([["p0", 5]]);
    const model = new Model(makeModel().report, {} as Source, {} as TaskStream, false, order);
    expect(model.colour("p0")).toBe("--cat-6");
  });

  test("other and unknown prefixes share one", () => {
    expect(makeModel().colour("p12")).toBe("--cat-rest");
    expect(makeModel().colour("unknown")).toBe("--cat-rest");
  });
});

describe("names of workers", () => {
  test("workers are called by name, otherwise by address", () => {
    expect(makeModel().worker("tcp://10.0.0.1:1")).toBe("SLURMCluster-1");
    expect(makeModel().worker("tcp://unknown")).toBe("tcp://unknown");
  });

  test("short names leave out the common prefix", () => {
    expect(makeModel().shortWorker("tcp://10.0.0.1:1")).toBe("…1");
    expect(makeModel().shortWorker("tcp://unknown")).toBe("tcp://unknown");
  });

  test("a single worker keeps its name", () => {
    const workers = [worker({ worker: "tcp://10.0.0.1:1", name: "SLURMCluster-1" })];
    expect(makeModel({ workers }).shortWorker("tcp://10.0.0.1:1")).toBe("SLURMCluster-1");
  });
});

test.each([
  ["memory kill", true],
  ["vanished", true],
  ["lost connection", true],
  ["retired", false],
  ["", false],
])("a worker with the verdict %j is lost: %s", (verdict, lost) => expect(isLost(worker({ verdict }))).toBe(lost));

describe("dependencies of tasks", () => {
  test("edges are decoded from differences", async () => {
    // Edges: 1 → 0, 2 → 0, 2 → 1. Tasks are differences, dependencies are zigzag distances.
    const model = makeModel({ edges: { rows: 3, tasks: { block: "t" }, dependencies: { block: "d" } } as never });
    const columns: Record<string, Uint8Array> = { t: new Uint8Array([1, 1, 0]), d: new Uint8Array([2, 4, 2]) };
    model.columns.numbers = (block) => Promise.resolve(columns[block.block]);
    expect(await loadNeighbours(model, 2)).toEqual({ dependencies: [0, 1], dependents: [] });
    expect(await loadNeighbours(model, 0)).toEqual({ dependencies: [], dependents: [1, 2] });
    expect(await loadNeighbours(model, 99)).toEqual({ dependencies: [], dependents: [] });
  });

  test("without recorded edges there are none", async () => {
    expect(await loadNeighbours(makeModel(), 0)).toEqual({ dependencies: [], dependents: [] });
  });
});
