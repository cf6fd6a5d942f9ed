import type { Block, DType } from "./schema.gen";

/** A compressed column: base64 in a page, bytes from a server. */
export type Raw = string | ArrayBuffer;
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;

interface Base64Bytes {
  fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
}

function bytesOf(raw: Raw): Uint8Array<ArrayBuffer> {
  if (typeof raw !== "string") return new Uint8Array(raw);
  const native = (Uint8Array as unknown as Base64Bytes).fromBase64;
  if (native) return native.call(Uint8Array, raw);
  const text = atob(raw);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

export async function inflate(raw: Raw): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = bytesOf(raw);
  if (bytes.length === 0) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const WIDTH: Record<Exclude<DType, "utf8">, number> = { u8: 1, u16: 2, u32: 4, f32: 4, f64: 8, mini: 2 };

/** Combine byte planes to numbers. The planes hold all lowest bytes, then all second bytes, and so on. */
export function unplane(planes: Uint8Array<ArrayBuffer>, dtype: Exclude<DType, "utf8">, length: number): Numbers {
  const k = WIDTH[dtype];
  if (planes.length < length * k) throw new Error(`A column is too short: ${planes.length} of ${length * k} bytes`);
  if (dtype === "u8") return planes.subarray(0, length);
  if (dtype === "u16") {
    const out = new Uint16Array(length);
    for (let i = 0; i < length; i++) out[i] = planes[i] | (planes[length + i] << 8);
    return out;
  }
  if (dtype === "mini") {
    // Small floats: nine bits and a shift. Numbers below 512 are stored as they are.
    const out = new Float64Array(length);
    for (let i = 0; i < length; i++) {
      const shift = planes[length + i];
      out[i] = shift < 2 ? planes[i] | (shift << 8) : (256 + planes[i]) * 2 ** (shift - 1);
    }
    return out;
  }
  if (dtype === "u32" || dtype === "f32") {
    const out = new Uint32Array(length);
    const b = length * 2;
    const c = length * 3;
    for (let i = 0; i < length; i++)
      out[i] = planes[i] | (planes[length + i] << 8) | (planes[b + i] << 16) | (planes[c + i] << 24);
    return dtype === "u32" ? out : new Float32Array(out.buffer);
  }
  const out = new Uint8Array(length * k);
  for (let p = 0; p < k; p++) {
    const from = p * length;
    for (let i = 0; i < length; i++) out[i * k + p] = planes[from + i];
  }
  return new Float64Array(out.buffer);
}

export async function decodeNumbers(block: Block, raw: Raw): Promise<Numbers> {
  if (block.dtype === "utf8") throw new Error(`Column ${block.block} holds text`);
  return unplane(await inflate(raw), block.dtype, block.length);
}

export async function decodeLines(block: Block, raw: Raw): Promise<string[]> {
  if (block.length === 0) return [];
  return new TextDecoder().decode(await inflate(raw)).split("\n");
}
