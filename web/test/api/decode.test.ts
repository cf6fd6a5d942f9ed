import { deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decodeLines, decodeNumbers } from "../../src/api/decode";
import type { Block, DType } from "../../src/api/schema.gen";

/** Encode numbers as the report does: byte planes, compressed. */
function encode(values: ArrayBufferView<ArrayBuffer>, dtype: DType, length: number): [Block, ArrayBuffer] {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const k = bytes.length / length;
  const planes = new Uint8Array(bytes.length);
  for (let i = 0; i < length; i++) for (let p = 0; p < k; p++) planes[p * length + i] = bytes[i * k + p];
  return [{ block: "b", dtype, length }, new Uint8Array(deflateSync(planes)).buffer];
}

const text = (lines: string) => new Uint8Array(deflateSync(Buffer.from(lines))).buffer;

describe("columns of numbers", () => {
  test.each([
    ["u8", new Uint8Array([0, 7, 255])],
    ["u16", new Uint16Array([0, 300, 65535])],
    ["u32", new Uint32Array([0, 70000, 4294967295])],
    ["f32", new Float32Array([0.5, Number.NaN, -3])],
    ["f64", new Float64Array([1e300, -0.1, 0])],
  ] as const)("%s is decoded from its byte planes", async (dtype, values) => {
    const [block, raw] = encode(values, dtype, values.length);
    expect(Array.from(await decodeNumbers(block, raw))).toEqual(Array.from(values));
  });

  test("small floats are nine bits and a shift", async () => {
    const planes = new Uint8Array([7, 255, 0, 255, 0, 1, 2, 55]);
    const raw = new Uint8Array(deflateSync(planes)).buffer;
    const values = await decodeNumbers({ block: "b", dtype: "mini", length: 4 }, raw);
    expect(Array.from(values)).toEqual([7, 511, 512, 511 * 2 ** 54]);
  });

  test("base64 in a page and bytes from a server decode alike", async () => {
    const [block, raw] = encode(new Uint16Array([1, 2, 515]), "u16", 3);
    expect(Array.from(await decodeNumbers(block, Buffer.from(raw).toString("base64")))).toEqual([1, 2, 515]);
  });

  test("a column that is too short is an error", async () => {
    const [block, raw] = encode(new Uint16Array([1]), "u16", 1);
    await expect(decodeNumbers({ ...block, length: 2 }, raw)).rejects.toThrow("too short");
  });

  test("a text column is not decoded as numbers", async () => {
    await expect(decodeNumbers({ block: "k", dtype: "utf8", length: 1 }, text("a"))).rejects.toThrow("holds text");
  });
});

describe("columns of text", () => {
  test("each line is a value", async () => {
    const lines = await decodeLines({ block: "k", dtype: "utf8", length: 3 }, text("a\nü\n</script>"));
    expect(lines).toEqual(["a", "ü", "</script>"]);
  });

  test("an empty column has no lines", async () => {
    expect(await decodeLines({ block: "k", dtype: "utf8", length: 0 }, text(""))).toEqual([]);
  });
});
