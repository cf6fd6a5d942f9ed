import { afterEach, describe, expect, test, vi } from "vitest";
import type { Block } from "../../src/api/schema.gen";
import { HttpSource, limitedReload } from "../../src/api/source";

const block = { block: "stream.gap" } as Block;

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}

const replaced = () => answer(410, { error: { code: "replaced", message: "This document was replaced." } });

afterEach(() => vi.unstubAllGlobals());

describe("a document of a server", () => {
  test("columns belong to the document that was loaded", async () => {
    const asked: string[] = [];
    vi.stubGlobal("fetch", async (url: string) => {
      asked.push(url);
      return answer(200, {}, { ETag: '"document-1"', "Last-Modified": "Tue, 17 Nov 2026 07:00:00 GMT" });
    });
    const source = new HttpSource("/document?account=a");
    await source.report();
    await source.raw(block);
    expect(asked).toEqual(["/document/report.json?account=a", "/document/blocks/stream.gap?account=a&of=document-1"]);
    expect(source.created).toBe("2026-11-17T07:00:00.000Z");
  });

  test("a replaced document is reloaded once, however many of its columns are missing", async () => {
    vi.stubGlobal("fetch", async () => replaced());
    let reloads = 0;
    const source = new HttpSource("/document", () => ++reloads > 0);
    const failed = vi.fn();
    source.raw(block).catch(failed);
    source.raw(block).catch(failed);
    await vi.waitFor(() => expect(reloads).toBe(1));
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(reloads).toBe(1);
    expect(failed).not.toHaveBeenCalled();
  });

  test("a page that cannot reload shows the message of the server", async () => {
    vi.stubGlobal("fetch", async () => replaced());
    await expect(new HttpSource("/document").raw(block)).rejects.toThrow("This document was replaced.");
  });

  test("a document that cannot be built shows the message of the server", async () => {
    vi.stubGlobal("fetch", async () =>
      answer(503, { error: { code: "build_failed", message: "Raise --build-memory." } }),
    );
    await expect(new HttpSource("/document").report()).rejects.toThrow("Raise --build-memory.");
  });

  test("an answer of a proxy shows its status", async () => {
    vi.stubGlobal("fetch", async () => new Response("<html>", { status: 502 }));
    await expect(new HttpSource("/document").report()).rejects.toThrow("status 502 for report.json");
  });

  test("a document that is replaced again and again is not reloaded forever", () => {
    let reloads = 0;
    const reload = limitedReload(() => reloads++);
    expect([reload(), reload(), reload(), reload()]).toEqual([true, true, true, false]);
    expect(reloads).toBe(3);
  });
});
