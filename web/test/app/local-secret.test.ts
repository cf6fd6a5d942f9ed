import { afterEach, expect, test, vi } from "vitest";
import { openWithSecret } from "../../src/app/sign-in/local-secret";
import { fakeBrowser } from "../fake-browser";

afterEach(() => vi.unstubAllGlobals());

/** Open a URL while the server answers with this status, and return the URL after that and what the page stored. */
async function opened(url: string, status: number): Promise<[url: string, stored: string[]]> {
  const browser = fakeBrowser(url);
  const stored: string[] = [];
  vi.stubGlobal("document", { querySelector: () => null });
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: (_key: string, value: string) => stored.push(value) });
  vi.stubGlobal("fetch", async () => {
    if (status === 0) throw new TypeError("no connection");
    return new Response(JSON.stringify({ user: "local", page_secret: "page" }), { status });
  });
  await openWithSecret("");
  return [browser.entries.join(" "), stored];
}

test("the secret is exchanged and leaves the URL", async () => {
  expect(await opened("/local/clusters?state=idle&secret=abc#x", 200)).toEqual([
    "/local/clusters?state=idle#x",
    ["page"],
  ]);
});

test("a refused secret leaves the URL, and stores nothing", async () => {
  expect(await opened("/?secret=wrong", 401)).toEqual(["/", []]);
  expect(await opened("/?secret=abc", 409)).toEqual(["/", []]);
});

test("the secret stays for a reload while the server is away", async () => {
  expect(await opened("/?secret=abc", 0)).toEqual(["/?secret=abc", []]);
  expect(await opened("/?secret=abc", 503)).toEqual(["/?secret=abc", []]);
});

test("a URL without a secret sends nothing", async () => {
  expect(await opened("/local?state=idle", 200)).toEqual(["/local?state=idle", []]);
});
