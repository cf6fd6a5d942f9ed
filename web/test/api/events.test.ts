import { describe, expect, test } from "vitest";
import { eventParser } from "../../src/api/server";

function parsed(...parts: string[]): [string, string][] {
  const found: [string, string][] = [];
  const parse = eventParser((event, data) => found.push([event, data]));
  for (const part of parts) parse(part);
  return found;
}

describe("server-sent events", () => {
  test("comments are ignored", () => {
    expect(parsed(": connected\n\n", ": still here\n\n")).toEqual([]);
  });

  test("an event can arrive in parts", () => {
    expect(parsed("event: cha", 'nged\ndata: ["a"]\n', "\nevent: x\ndata: 1\n\n")).toEqual([
      ["changed", '["a"]'],
      ["x", "1"],
    ]);
  });

  test("an event that is not complete is not delivered", () => {
    expect(parsed("event: changed\ndata: []\n")).toEqual([]);
  });
});
