import { afterEach, describe, expect, test, vi } from "vitest";
import { Router } from "../../src/model/page/router";
import { fakeBrowser } from "../fake-browser";

afterEach(() => void vi.unstubAllGlobals());

describe("reading the URL", () => {
  test("the path is split into decoded parts", () => {
    fakeBrowser("/ours/clusters/a%2Fb%20c");
    expect(new Router("").parts).toEqual(["ours", "clusters", "a/b c"]);
  });

  test("empty parts are dropped", () => {
    fakeBrowser("//host/ours//clusters/");
    expect(new Router("").parts).toEqual(["ours", "clusters"]);
  });

  test("a part that cannot be decoded stays as it is", () => {
    fakeBrowser("/ours/%E0%A4%A");
    expect(new Router("").parts).toEqual(["ours", "%E0%A4%A"]);
  });

  test("the prefix of a reverse proxy is removed", () => {
    fakeBrowser("/tools/dask/ours/errors");
    expect(new Router("/tools/dask").parts).toEqual(["ours", "errors"]);
  });

  test("a path that only begins like the prefix keeps it", () => {
    fakeBrowser("/tools/daskboard/ours");
    expect(new Router("/tools/dask").parts).toEqual(["tools", "daskboard", "ours"]);
  });

  test("the prefix alone has no parts", () => {
    fakeBrowser("/tools/dask");
    expect(new Router("/tools/dask").parts).toEqual([]);
  });

  test("parameters come from the query, not from the hash", () => {
    fakeBrowser("/ours?q=a+b&state=#profile?x=1");
    expect(new Router("").params).toEqual({ q: "a b", state: "" });
  });
});

describe("links", () => {
  test("parts and parameters are encoded", () => {
    fakeBrowser("/");
    expect(new Router("/root").href(["ours", "clusters", "a/b?c"], { user: "ada & co" })).toBe(
      "/root/ours/clusters/a%2Fb%3Fc?user=ada+%26+co",
    );
  });

  test("empty and undefined parameters are left out", () => {
    fakeBrowser("/");
    expect(new Router("").href(["ours"], { q: "", state: undefined })).toBe("/ours");
  });

  test("without parts they lead to the root", () => {
    fakeBrowser("/");
    expect(new Router("").href([])).toBe("/");
    expect(new Router("/root").href([])).toBe("/root/");
  });

  test("reading a link gives the same parts", () => {
    const browser = fakeBrowser("/");
    const router = new Router("");
    const parts = ["ours", "clusters", "häß/lich #1 %"];
    router.go(router.href(parts));
    expect(router.parts).toEqual(parts);
    expect(browser.entries).toHaveLength(2);
  });
});

describe("changes", () => {
  test("going somewhere adds a history entry and notifies subscribers", () => {
    const browser = fakeBrowser("/ours");
    const router = new Router("");
    const listener = vi.fn();
    router.subscribe(listener);
    router.go("/ours/errors?q=x");
    expect(router.parts).toEqual(["ours", "errors"]);
    expect(router.params).toEqual({ q: "x" });
    expect(browser.entries).toHaveLength(2);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test("setting parameters replaces the history entry and keeps the hash", () => {
    const browser = fakeBrowser("/ours/errors?q=x#profile");
    const router = new Router("");
    router.set({ state: "resolved", q: undefined });
    expect(browser.entries).toEqual(["/ours/errors?state=resolved#profile"]);
    expect(router.params).toEqual({ state: "resolved" });
  });

  test("setting the same parameters does not touch the history", () => {
    const browser = fakeBrowser("/ours/errors?q=x");
    new Router("").set({ q: "x" });
    expect(browser.replaced).toBe(0);
  });

  test("an empty parameter is removed", () => {
    fakeBrowser("/ours/errors?q=x");
    const router = new Router("");
    router.set({ q: "" });
    expect(router.params).toEqual({});
  });

  test("Back restores path and parameters", () => {
    const browser = fakeBrowser("/ours?q=x");
    const router = new Router("");
    router.go("/ours/errors");
    browser.back();
    expect([router.parts, router.params]).toEqual([["ours"], { q: "x" }]);
  });

  test("an unsubscribed listener is not called", () => {
    fakeBrowser("/ours");
    const router = new Router("");
    const listener = vi.fn();
    router.subscribe(listener)();
    router.go("/ours/errors");
    expect(listener).not.toHaveBeenCalled();
  });
});
