import type { ComponentChild } from "preact";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Api } from "../../src/api/server";
import type {
  ErrorState,
  Failure,
  ListedError,
  Me,
  OneError,
  Overview,
  Token,
  Usage,
  UsageLine,
} from "../../src/api/server.gen";
import { ErrorPage } from "../../src/app/errors/error";
import { ErrorGroups } from "../../src/app/errors/errors";
import { Home } from "../../src/app/home/home";
import { Reports } from "../../src/app/reports/reports";
import { MissingRows } from "../../src/app/run/cluster";
import { Tokens } from "../../src/app/settings/settings-tokens";
import { type Team, TeamContext } from "../../src/app/shell/context";
import { UsagePage } from "../../src/app/usage/usage";
import { ParamContext } from "../../src/model/page/hooks";
import { Router } from "../../src/model/page/router";
import { fakeBrowser } from "../fake-browser";
import { type FakeNode, renderFake } from "../fake-document";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Render a page of the account "ours". `answers` has the response of each API path. */
function page(content: ComponentChild, url: string, answers: Record<string, unknown>): Promise<FakeNode> {
  fakeBrowser(url);
  const router = new Router("");
  const get = async (path: string) => {
    if (!(path in answers)) throw new Error(`No answer for ${path}`);
    return answers[path];
  };
  const team: Team = {
    api: { get, root: "" } as unknown as Api,
    me: { user: "olga", kind: "session", scopes: ["read", "write", "tokens"] } as unknown as Me,
    router,
    account: "ours",
    onChange: () => () => undefined,
  };
  return renderFake(
    <TeamContext.Provider value={team}>
      <ParamContext.Provider value={router}>{content}</ParamContext.Provider>
    </TeamContext.Provider>,
  );
}

const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString();

const error = (count: number, state: ErrorState): ListedError => ({
  fingerprint: `f${count}`,
  type: "ValueError",
  message: "no",
  first_seen: hourAgo(),
  last_seen: hourAgo(),
  count,
  n_fatal: count,
  n_computations: 1,
  n_clusters: 1,
  users: ["olga"],
  function: "parse",
  file: "/home/olga/clean.py",
  line: 88,
  state,
  state_since: null,
  state_by: "",
  url: "",
  hours: [0, count],
  fatal_hours: [0, count],
});

describe("the errors page", () => {
  const shown = (items: ListedError[]) => page(<ErrorGroups />, "/ours/errors", { errors: { items, next: null } });

  test("says how many error groups are open", async () => {
    const found = await shown([error(3, "open"), error(1, "regressed")]);
    expect(found.textOf("answer")).toBe(
      "2 open error groups. ValueError in parse ended 1 computation, last seen 1 h ago. 1 came back after being resolved. 1 other group failed tasks.",
    );
    const rows = found.all("data-testid", "error-row").map((row) => row.text);
    expect(rows).toHaveLength(2);
    expect(rows[0]).toContain("ValueError in parse");
    expect(rows[0]).toContain("clean.py, line 88");
    expect(rows[0]).toContain("Ended 1 computation");
  });

  test("tells errors that were always retried from fatal ones", async () => {
    const retried = { ...error(30, "open"), n_fatal: 0, n_computations: 0 };
    const found = await shown([retried]);
    expect(found.textOf("answer")).toBe("1 open error group. All were retried.");
    expect(found.all("data-testid", "error-row")[0].text).toContain("All 30 retried");
  });

  test("says that none is open", async () => {
    expect((await shown([])).textOf("answer")).toBe("No open errors.");
  });
});

describe("the page of an error", () => {
  const failure: Failure = {
    id: 1,
    time: hourAgo(),
    cluster_id: "one",
    scheduler_id: "s",
    cluster_name: "one",
    user: "olga",
    type: "ValueError",
    message: "no",
    traceback: "",
    cause_type: "",
    cause_message: "",
    key: "parse-1",
    prefix: "parse",
    computation_id: "c",
    worker: "w",
    fingerprint: "f1",
    will_retry: false,
    count: 1,
    url: "",
  };
  const timeline = { start: "2026-11-12T00:00:00Z", step: 7200, counts: [0, 3], fatal: [0, 1] };
  const group: OneError = { ...error(1, "open"), traceback: "", versions: {}, latest: [failure], timeline };

  test("shows the code of the computation, and marks the line", async () => {
    const shown = await page(<ErrorPage fingerprint="f1" />, "/ours/errors/f1", {
      "errors/f1": group,
      "clusters/one/computations/c": { code: "x = 1\nx.compute()", code_line: 1, code_file: "job.py" },
    });
    await vi.waitFor(() => expect(shown.textOf("error-code")).toContain("▸ x.compute()"));
  });

  test("says what it ended, when it occurred, and whether the sample was retried", async () => {
    const retried = { ...failure, id: 2, will_retry: true, key: "parse-2", computation_id: "" };
    const latest = [{ ...failure, computation_id: "" }, retried];
    const shown = (url: string) => page(<ErrorPage fingerprint="f1" />, url, { "errors/f1": { ...group, latest } });
    const first = await shown("/ours/errors/f1");
    expect(first.textOf("answer")).toBe("It ended 1 computation (1 run). 1 failed, none retried. no");
    expect(first.textOf("error-timeline")).toContain("3 occurrences in 0 days, per 2 hours");
    expect(first.textOf("sample-place")).toBe("1 of 2");
    expect(first.textOf("sample")).toContain("failed for good");
    const second = await shown("/ours/errors/f1?sample=2");
    expect(second.textOf("sample-place")).toBe("2 of 2");
    expect(second.textOf("sample")).toContain("retried");
    expect((await shown("/ours/errors/f1?sample=99")).textOf("sample-place")).toBe("2 of 2");
    expect((await shown("/ours/errors/f1?sample=x")).textOf("sample-place")).toBe("1 of 2");
  });
});

describe("the usage page", () => {
  const line = (name: string, label: string, cost: number): UsageLine => ({
    name,
    label,
    tasks: 10,
    errors: 0,
    compute_seconds: 60,
    transfer_seconds: 0,
    nbytes: 0,
    thread_seconds: 240,
    cost,
    cost_busy: cost / 4,
    cost_idle: (3 * cost) / 4,
  });
  const usage = (cost: number): Usage => {
    const items = [line("done", "other cluster", cost)];
    return { by: "cluster", items, total: line("", "", cost), clusters: 1, estimate: true };
  };
  const shown = (cost: number) => page(<UsagePage />, "/ours/usage?by=cluster", { usage: usage(cost) });

  test("says what the period cost", async () => {
    expect((await shown(8)).textOf("answer")).toBe(
      "$8.00 in the last 30 days (estimate). 75 % of it for idle threads.",
    );
    expect((await shown(0)).textOf("answer")).toBe("No cost in the last 30 days.");
  });

  test("names clusters and links to them", async () => {
    const [link] = (await shown(8)).all("href");
    expect([link.text, link.attributes.get("href")]).toEqual(["other cluster", "/ours/clusters/done"]);
  });
});

describe("the tokens in the settings", () => {
  const token = (hint: string, expires_soon: boolean) =>
    ({
      id: 1,
      hint,
      label: "",
      scopes: ["read"],
      recorders: 0,
      expires: "2030-01-02T00:00:00Z",
      expires_soon,
    }) as Token;

  test("a token that expires soon is marked, and a new one expires in 90 days", async () => {
    const items = [token("aa", true), token("bb", false)];
    const shown = await page(<Tokens />, "/ours/settings", { tokens: { items } });
    const rows = shown.all("data-testid", "token-row").map((row) => row.text);
    expect(rows.map((text) => /2030-01-02 ?(soon)?/.exec(text)?.[1])).toEqual(["soon", undefined]);
    const [days] = shown.all("data-testid", "token-days");
    expect(days.attributes.get("value")).toBe("90");
  });
});

describe("an empty account", () => {
  test("shows how to start", async () => {
    const overview = { states: {} } as Overview;
    const home = await page(<Home />, "/ours", { overview });
    expect(home.text).toContain("No clusters recorded yet");
    expect(home.text).toContain('dask.config.set({"daskscope.server": "http://host"})');
    const reports = await page(<Reports />, "/ours/reports", { reports: { items: [], next: null } });
    expect(reports.text).toContain("No reports yet");
  });
});

describe("the home page", () => {
  const shown = async (n_failed: number) => {
    const none = {
      running: [],
      failed: [],
      idle: [],
      days: [],
      weeks: [],
      reports: [],
      n_finished: 5,
      idle_per_hour: 0.5,
    };
    const overview: Overview = { ...none, states: { running: 1, idle: 1 }, n_failed };
    return (await page(<Home />, "/ours", { overview, runs: { items: [], next: null } })).textOf("answer");
  };
  test("says first what failed", async () => {
    expect(await shown(2)).toBe(
      "2 computations failed since midnight. 2 clusters are up; 1 is idle and costs $0.50 per hour.",
    );
    expect(await shown(0)).toBe("2 clusters are up. No failures since midnight; 1 is idle and costs $0.50 per hour.");
  });
});

describe("a cluster with lost files", () => {
  test("says how many rows are missing, and what to do", async () => {
    const shown = await page(<MissingRows rows={1020} />, "/ours/clusters/c", {});
    expect(shown.textContent).toBe(
      "1,020 rows of this cluster are missing: the server has lost files. Restore them from a backup, or run daskscope doctor.",
    );
  });

  test("has no such text if no row is missing", async () => {
    const shown = await page(<MissingRows rows={0} />, "/ours/clusters/c", {});
    expect(shown.textContent).toBe("");
  });
});
