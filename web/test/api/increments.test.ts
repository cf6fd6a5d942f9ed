import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { decodeIncrement } from "../../src/api/increments";

function encoded(columns: [string, string, string, number][], raw: Uint8Array): ArrayBuffer {
  const header = new TextEncoder().encode(JSON.stringify({ cursor: "1.2.3", columns }));
  const body = deflateSync(raw);
  const data = new Uint8Array(4 + header.length + body.length);
  new DataView(data.buffer).setUint32(0, header.length, true);
  data.set(header, 4);
  data.set(body, 4 + header.length);
  return data.buffer;
}

test("columns follow the header, one after the other", async () => {
  const raw = new Uint8Array(8 + 2 + 1);
  new DataView(raw.buffer).setFloat64(0, 1.5, true);
  new DataView(raw.buffer).setUint16(8, 513, true);
  raw[10] = 4;
  const data = encoded(
    [
      ["bars", "start", "f8", 1],
      ["bars", "lane", "u2", 1],
      ["bars", "category", "u1", 1],
    ],
    raw,
  );
  const { header, parts } = await decodeIncrement(data);
  expect(header.cursor).toBe("1.2.3");
  expect(parts.bars).toEqual({
    start: Float64Array.of(1.5),
    lane: Uint16Array.of(513),
    category: Uint8Array.of(4),
  });
});

test("an increment that is cut off is refused", async () => {
  const data = encoded([["bars", "start", "f8", 3]], new Uint8Array(8));
  await expect(decodeIncrement(data)).rejects.toThrow("cut off");
});
