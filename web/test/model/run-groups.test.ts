import { describe, expect, test } from "vitest";
import type { ListedCluster, RecentRun, RunGroup, RunState } from "../../src/api/server.gen";
import {
  chipQuery,
  comparedText,
  durationChange,
  failedInRow,
  layOutStrip,
  outcomeText,
  runsAnswer,
  STRIP_PLACES,
  signedPercent,
  slowerText,
  stripLabel,
  usualDuration,
} from "../../src/model/run-groups";

const run = (id: number | string, duration: number, state: RunState = "finished", lost_workers = 0): RecentRun => ({
  id: String(id),
  start: null,
  duration,
  state,
  lost_workers,
});

const cluster = (values: Partial<ListedCluster>) =>
  ({
    id: "now",
    state: "finished",
    duration: 10,
    problem: "",
    reason: "",
    lost_workers: 0,
    ...values,
  }) as ListedCluster;

const tens = [run(1, 10), run(2, 9), run(3, 11), run(4, 10)];

describe("the usual duration", () => {
  test("is the median and the middle half of finished runs, without the run itself", () => {
    expect(usualDuration([...tens, run("now", 99), run(5, 1, "failed"), run(6, 1, "running")], "now")).toEqual({
      runs: 4,
      median: 10,
      low: 9.75,
      high: 10.25,
    });
  });

  test("is unknown for fewer than three runs", () => {
    expect(usualDuration([run(1, 1), run(2, 1), run(3, 1, "failed")])).toBeNull();
    expect(durationChange(cluster({}), [run(1, 0), run(2, 0), run(3, 0)])).toBeNull();
  });

  test("is compared in the overview, and named in the headline of a slower run", () => {
    const slow = cluster({ duration: 16.3 });
    expect(comparedText(slow, tens)).toBe("+63 %, median 10.0 s of 4 other runs");
    expect(slowerText(slow, tens)).toBe("63 % slower than usual");
    expect(comparedText(cluster({ state: "failed" }), tens)).toBe("median 10.0 s of 4 other runs");
    expect([slowerText(cluster({}), tens), slowerText(cluster({ duration: 1 }), tens)]).toEqual(["", ""]);
    expect([comparedText(slow, []), slowerText(slow, [])]).toEqual(["", ""]);
  });

  test("is compared only with a finished run", () => {
    expect(durationChange(cluster({ duration: 16.3 }), tens)).toMatchObject({ usual: false, runs: 4 });
    expect(durationChange(cluster({ duration: 10.8 }), tens)?.usual).toBe(true);
    expect(durationChange(cluster({ state: "failed" }), tens)).toBeNull();
  });
});

describe("the outcome of a run", () => {
  test.each([
    [{ duration: 10.4 }, "as usual"],
    [{ duration: 16.3 }, "+63 % over the median of 4 runs"],
    [{ duration: 7.8 }, "22 % under the median of 4 runs"],
    [{ state: "failed", problem: "ValueError: no" }, "ValueError: no"],
    [{ state: "failed" }, "the error was not recorded"],
    [{ problem: "Worker w-5 was lost", lost_workers: 1 }, "Worker w-5 was lost"],
    [{ state: "running", reason: "3 of 4 tasks done", problem: "Worker w-5 was lost" }, "3 of 4 tasks done"],
    [{ state: "idle", workers: 4, memory_limit: 2 ** 34 }, "holds 4 workers and 16 GiB of memory"],
    [{ state: "idle", workers: 0, reason: "no task is running or waiting" }, "no task is running or waiting"],
    [{ state: "unfinished" }, "closed before its tasks finished"],
    [{ state: "interrupted" }, "a user stopped its tasks"],
    [{ state: "lost", reason: "no message for 2 min" }, "no message for 2 min"],
  ] as [Partial<ListedCluster>, string][])("%j", (values, text) => {
    expect(outcomeText(cluster(values), tens)).toBe(text);
  });

  test("says nothing about a single run", () => {
    expect(outcomeText(cluster({}), [run("now", 10)])).toBe("");
    expect(outcomeText(cluster({}), [run(1, 10), run("now", 10)])).toBe("too few finished runs to compare");
  });

  test.each([
    [0.634, "+63 %"],
    [-0.22, "−22 %"],
    [0.004, "0 %"],
    [-0.004, "0 %"],
    [41, "+4,100 %"],
  ])("a change of %d is %s", (share, text) => expect(signedPercent(share)).toBe(text));
});

test("failures in a row end at the last run that did not fail", () => {
  expect(failedInRow([])).toBe(0);
  expect(failedInRow([run(1, 1, "failed"), run(2, 1)])).toBe(0);
  expect(failedInRow([run(1, 1), run(2, 1, "failed"), run(3, 1, "failed"), run(4, 1, "running")])).toBe(2);
  expect(failedInRow([run(1, 1, "failed")])).toBe(1);
});

describe("the strip", () => {
  test("has the newest run at the right, higher is slower, and crosses below the scale", () => {
    const { marks, band, foot } = layOutStrip([...tens, run(5, 2, "failed"), run("now", 20)], "now", 190, 40);
    expect(marks.map((mark) => mark.kind)).toEqual(["dot", "dot", "dot", "dot", "failed", "dot"]);
    expect(marks.at(-1)).toMatchObject({ x: 184, last: true });
    expect(marks[5].y).toBeLessThan(marks[2].y);
    expect(marks[2].y).toBeLessThan(marks[1].y);
    expect(foot).not.toBeNull();
    expect(marks[4].y).toBeGreaterThan(foot ?? 0);
    expect(band?.median).toBeCloseTo(marks[0].y);
  });

  test("marks runs that go on, that were cut short and that lost workers", () => {
    const recent = [run(1, 5, "running"), run(2, 5, "interrupted"), run(3, 5, "finished", 2)];
    const { marks, band } = layOutStrip(recent, "1", 190, 40);
    expect(marks.map((mark) => [mark.kind, mark.lost, mark.last])).toEqual([
      ["open", false, true],
      ["cut", false, false],
      ["dot", true, false],
    ]);
    expect(band).toBeNull();
  });

  test("stays inside of its box whatever the durations are", () => {
    for (const durations of [[0, 0, 0], [1e300, 0, 1], [5], [7, 7], []]) {
      const { marks } = layOutStrip(
        durations.map((value, i) => run(i, value)),
        "",
        190,
        40,
      );
      for (const { x, y } of marks) {
        expect(x >= 0 && x <= 190, `${durations}`).toBe(true);
        expect(y >= 0 && y <= 40, `${durations}`).toBe(true);
      }
    }
    const many = Array.from({ length: 90 }, (_, i) => run(i, i));
    expect(layOutStrip(many, "", 190, 40).marks).toHaveLength(STRIP_PLACES);
  });

  test("is described in words", () => {
    expect(stripLabel([...tens, run(5, 2, "failed", 1)])).toBe(
      "Durations of the last 5 runs, median 10.0 s, 1 failed, 1 run lost workers",
    );
    expect(stripLabel([run(1, 1)])).toBe("Durations of the last 1 run");
  });
});

describe("the answer", () => {
  const group = (name: string, newest: Partial<ListedCluster>, recent: RecentRun[]): RunGroup => ({
    name,
    newest: cluster({ name, ...newest }),
    runs: recent.length,
    cost: 0,
    recent,
  });
  const slow = group("slow", { duration: 20 }, tens);
  const failing = group("etl", { state: "failed" }, [run(1, 1), run(2, 1, "failed"), run(3, 1, "failed")]);
  const lost = group("features", { lost_workers: 2 }, tens);

  test("names failures in a row first, then lost workers, then slower runs", () => {
    expect(runsAnswer([slow, lost, failing])).toEqual({
      name: "etl",
      fact: "has failed 2 times in a row.",
      slower: [{ name: "slow", share: "100 %" }],
    });
    expect(runsAnswer([slow, lost])).toMatchObject({ name: "features", fact: "lost 2 workers." });
    expect(runsAnswer([slow])).toEqual({ name: "slow", fact: "took 100 % longer than usual.", slower: [] });
    expect(runsAnswer([group("once", { state: "failed" }, [run(1, 1, "failed")])]).fact).toBe("failed.");
    expect(runsAnswer([group("", { state: "failed" }, [])]).fact).toBe("");
    expect(runsAnswer([]).fact).toBe("");
  });
});

test("a chip is a state, or runs that lost workers", () => {
  expect(chipQuery("failed")).toEqual({ state: "failed" });
  expect(chipQuery("worker-lost")).toEqual({ state: "", lost_workers: true });
});
