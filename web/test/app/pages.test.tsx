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
  n_clusters: 1,
  users: ["olga"],
  state,
  state_since: null,
  state_by: "",
  url: "",
  hours: [0, count],
});

describe("the errors page", () => {
  const shown = (items: ListedError[]) => page(<ErrorGroups />, "/ours/errors", { errors: { items, next: null } });

  test("says how many error groups are open", async () => {
    const found = await shown([error(3, "open"), error(1, "regressed")]);
    expect(found.textOf("answer")).toBe(
      "2 open error groups. 1 came back after being resolved. Latest: ValueError, 1 h ago, 3 occurrences.",
    );
    expect(found.all("data-testid", "error-row")).toHaveLength(2);
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
  const group: OneError = { ...error(1, "open"), traceback: "", versions: {}, latest: [failure] };

  test("shows the code of the computation, and marks the line", async () => {
    const shown = await page(<ErrorPage fingerprint="f1" />, "/ours/errors/f1", {
      "errors/f1": group,
      "clusters/one/computations/c": { code: "x = 1\nx.compute()", code_line: 1, code_file: "job.py" },
    });
    await vi.waitFor(() => expect(shown.textOf("error-code")).toContain("▸ x.compute()"));
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
