import { inflate } from "./decode";
import { pageHeaders } from "./page-secret";
import { ApiError } from "./server";
import type { IncrementHeader } from "./server.gen";

export type Column = Float64Array | Uint8Array | Uint16Array | Uint32Array;

const TYPES = { f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array } as const;

type Part = "bars" | "busy" | "samples" | "stacks" | "nodes";

/** What a page that follows a cluster did not have yet. */
export interface Increment {
  header: IncrementHeader;
  /** Columns by part and name. */
  parts: Record<Part, Record<string, Column>>;
}

/** Decode an increment: the length of its header, the header as JSON, and all columns as one compressed block. */
export async function decodeIncrement(data: ArrayBuffer): Promise<Increment> {
  const size = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size))) as IncrementHeader;
  const raw = await inflate(data.slice(4 + size));
  const parts: Increment["parts"] = { bars: {}, busy: {}, samples: {}, stacks: {}, nodes: {} };
  let at = 0;
  for (const [part, name, type, length] of header.columns) {
    const Type = TYPES[type as keyof typeof TYPES];
    const end = at + length * Type.BYTES_PER_ELEMENT;
    if (end > raw.length) throw new Error("An increment is cut off");
    parts[part as Part][name] = new Type(raw.buffer.slice(raw.byteOffset + at, raw.byteOffset + end));
    at = end;
  }
  return { header, parts };
}

/** Ask for an increment. The server answers as soon as there is something new, or after the wait that the URL names. */
export async function fetchIncrement(url: string, signal: AbortSignal): Promise<Increment> {
  let response: Response;
  try {
    response = await fetch(url, { headers: pageHeaders(), signal });
  } catch {
    throw new ApiError(0, "unreachable", "The server did not respond.");
  }
  if (response.ok) return decodeIncrement(await response.arrayBuffer());
  const answer = (await response.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  throw new ApiError(
    response.status,
    answer?.error?.code ?? "failed",
    answer?.error?.message ?? `The server responded with status ${response.status}.`,
  );
}
