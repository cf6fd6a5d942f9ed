import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Nav, parseHash, toHash, VIEWS } from "../../src/model/page/nav";
import { select, wholeRun } from "../../src/model/time";
import { fakeBrowser } from "../fake-browser";

const axis = { length: 10e6, width: 0.1e6, bins: 100 };

describe("reading the URL", () => {
  test("a link contains the whole state", () => {
    const state = {
      view: "profile" as const,
      selection: select(axis, 1e6, 3e6),
      activity: "transfer" as const,
      params: { prefix: "a&b=c #?%", item: "7", q: "“ü” 🙂" },
    };
    expect(parseHash(toHash(state), axis)).toEqual(state);
  });

  test.each(VIEWS)("#%s opens that view", (view) => expect(parseHash(`#${view}`, axis).view).toBe(view));

  test.each(["", "#", "#/", "#nonsense", "#OVERVIEW", "#overview/x", "#%E0%A4%A", "#__proto__"])(
    "%j opens the first view",
    (hash) => {
      expect(parseHash(hash, axis).view).toBe("overview");
      expect(parseHash(hash, axis, "profile").view).toBe("profile");
    },
  );

  test.each(["5-x", "x", "", "-", "NaN-3", "9e99-1", "1.2.3-4", "7-7", "Infinity-2", "50-60", "1"])(
    "the time %j selects the whole run",
    (t) => expect(parseHash(`#stream?t=${t}`, axis).selection).toEqual(wholeRun(axis)),
  );

  test("times are in seconds, in any order, and clamped to the run", () => {
    expect(parseHash("#stream?t=1-3", axis).selection).toMatchObject({ t0: 1e6, t1: 3e6 });
    expect(parseHash("#stream?t=3-1", axis).selection).toMatchObject({ t0: 1e6, t1: 3e6 });
    expect(parseHash("#stream?t=8-99", axis).selection).toMatchObject({ t0: 8e6, t1: 10e6 });
    expect(parseHash("#stream?t=-5-2", axis).selection).toMatchObject({ t0: 0, t1: 2e6 });
  });

  test.each(["__proto__", "constructor", "CPU", ""])("the activity %j is unknown", (activity) => {
    expect(parseHash(`#fine?activity=${activity}`, axis).activity).toBeNull();
  });

  test("time and activity are not parameters of the view", () => {
    expect(parseHash("#fine?t=1-2&activity=cpu&unit=bytes", axis).params).toEqual({ unit: "bytes" });
  });

  test("a question mark in a parameter is kept", () => {
    expect(parseHash("#profile?q=a?b", axis).params).toEqual({ q: "a?b" });
  });

  test("the last of repeated parameters counts", () => {
    expect(parseHash("#fine?unit=a&unit=b", axis).params.unit).toBe("b");
  });
});

describe("writing the URL", () => {
  test("the whole run and all activities are left out", () => {
    expect(toHash({ view: "workers", selection: wholeRun(axis), activity: null, params: {} })).toBe("#workers");
  });

  test("times are rounded to microseconds", () => {
    const selection = { ...select(axis, 1e6, 3e6), t0: 1_234_567.89 };
    expect(toHash({ view: "stream", selection, activity: null, params: {} })).toBe("#stream?t=1.234568-3");
  });
});

describe("navigation", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("it starts with the state of the URL", () => {
    fakeBrowser("/report.html#workers?item=2");
    const nav = new Nav(axis, "overview");
    expect(nav.state.view).toBe("workers");
    expect(nav.params).toEqual({ item: "2" });
  });

  test("opening a view adds a history entry and keeps selection and activity", () => {
    const browser = fakeBrowser("/report.html#overview?t=1-3&activity=cpu");
    const nav = new Nav(axis, "overview");
    nav.go("workers", { item: "1" });
    expect(browser.entries).toHaveLength(2);
    expect(browser.location.hash).toBe("#workers?t=1-3&activity=cpu&item=1");
  });

  test("opening a view drops the parameters of the previous view", () => {
    fakeBrowser("/report.html#profile?q=spin");
    const nav = new Nav(axis, "overview");
    nav.go("memory");
    expect(nav.params).toEqual({});
  });

  test("changing a parameter replaces the history entry", () => {
    const browser = fakeBrowser("/report.html#profile");
    const nav = new Nav(axis, "overview");
    nav.set({ q: "spin" });
    expect(browser.entries).toEqual(["/report.html#profile?q=spin"]);
    nav.set({ q: undefined });
    vi.runAllTimers();
    expect(browser.location.hash).toBe("#profile");
  });

  test("a drag writes the URL at most four times a second, but always the last state", () => {
    const browser = fakeBrowser("/report.html#stream");
    const nav = new Nav(axis, "overview");
    for (let i = 1; i <= 100; i++) {
      nav.select(select(axis, 0, i * 0.1e6));
      vi.advanceTimersByTime(10);
    }
    vi.runAllTimers();
    expect(browser.replaced).toBeLessThanOrEqual(5);
    nav.select(select(axis, 0, 2e6));
    vi.runAllTimers();
    expect(browser.location.hash).toBe("#stream?t=0-2");
  });

  test("a copied link has the latest state without waiting", () => {
    fakeBrowser("/report.html#fine");
    const nav = new Nav(axis, "overview");
    nav.set({ unit: "bytes" });
    nav.set({ prefix: "spin" });
    expect(nav.link()).toBe("http://host/report.html#fine?unit=bytes&prefix=spin");
  });

  test("the same activity again clears the filter", () => {
    fakeBrowser("/report.html#overview");
    const nav = new Nav(axis, "overview");
    nav.filterActivity("cpu");
    expect(nav.state.activity).toBe("cpu");
    nav.filterActivity("disk");
    expect(nav.state.activity).toBe("disk");
    nav.filterActivity("disk");
    expect(nav.state.activity).toBeNull();
    nav.filterActivity(null);
    expect(nav.state.activity).toBeNull();
  });

  test("Back restores the previous state and notifies subscribers", () => {
    const browser = fakeBrowser("/report.html#overview");
    const nav = new Nav(axis, "overview");
    const listener = vi.fn();
    nav.subscribe(listener);
    nav.go("memory");
    browser.back();
    expect(nav.state.view).toBe("overview");
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test("a selection made just before opening a view is in the previous entry", () => {
    const browser = fakeBrowser("/report.html#stream");
    const nav = new Nav(axis, "overview");
    nav.select(select(axis, 0, 1e6));
    nav.select(select(axis, 0, 2e6));
    nav.go("workers");
    expect(browser.entries).toEqual(["/report.html#stream?t=0-2", "/report.html#workers?t=0-2"]);
  });

  test("after closing and unsubscribing nothing is notified", () => {
    const browser = fakeBrowser("/report.html#overview");
    const nav = new Nav(axis, "overview");
    const listener = vi.fn();
    const unsubscribe = nav.subscribe(listener);
    nav.go("memory");
    unsubscribe();
    nav.close();
    browser.back();
    expect(listener).toHaveBeenCalledTimes(1);
    expect(nav.state.view).toBe("memory");
  });

  test("links to views do not change the state", () => {
    const browser = fakeBrowser("/report.html#overview?t=1-3");
    const nav = new Nav(axis, "overview");
    expect(nav.href("profile", { prefix: "a b" })).toBe("#profile?t=1-3&prefix=a+b");
    expect(browser.entries).toHaveLength(1);
    expect(nav.state.view).toBe("overview");
  });
});

test("charts inside another page leave the URL alone", () => {
  const browser = fakeBrowser("/local/clusters/one#stream?t=1-2");
  const nav = new Nav(axis, "overview", false);
  expect(nav.state).toMatchObject({ view: "overview", selection: wholeRun(axis) });
  let calls = 0;
  nav.subscribe(() => calls++);
  nav.select(select(axis, 2e6, 3e6));
  nav.filterActivity("cpu");
  expect(nav.state).toMatchObject({ selection: select(axis, 2e6, 3e6), activity: "cpu" });
  expect(calls).toBe(2);
  expect(browser.entries).toEqual(["/local/clusters/one#stream?t=1-2"]);
  expect(browser.replaced).toBe(0);
});
