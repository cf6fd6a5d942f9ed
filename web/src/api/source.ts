import { decodeLines, decodeNumbers, inflate, type Numbers, type Raw } from "./decode";
import { pageHeaders } from "./page-secret";
import { type Block, type Comparison, type Report, SCHEMA } from "./schema.gen";

/** Where a report comes from: the page itself or a server. */
export interface Source {
  report(): Promise<Report>;
  /** Return the compressed bytes of a column. */
  raw(block: Block): Promise<Raw>;
}

class EmbeddedSource implements Source {
  constructor(private readonly packed: Element) {}

  async report(): Promise<Report> {
    const text = new TextDecoder().decode(await inflate(this.packed.textContent.trim()));
    return JSON.parse(text) as Report;
  }

  async raw(block: Block): Promise<Raw> {
    const found = document.getElementById(`daskscope-block-${block.block}`);
    if (!found) throw new Error(`Column ${block.block} is missing from this page`);
    return found.textContent.trim();
  }
}

/** The server no longer has the document that the page shows: the cluster is live, and the page was open for long. */
class Replaced extends Error {}

/** A document that is replaced again and again is not reloaded more often than this. */
const MAX_RELOADS = 3;

/** Return a function that reloads a document, a few times. */
export function limitedReload(reload: () => void): () => boolean {
  let left = MAX_RELOADS;
  return () => {
    if (left === 0) return false;
    left--;
    reload();
    return true;
  };
}

export class HttpSource implements Source {
  /** Version of the document. Its columns must come from the same version. */
  private tag = "";
  /** When the server built the document, as an ISO time; empty if unknown. */
  created = "";

  private reloads: boolean | null = null;
  private readonly prefix: string;
  private readonly parameters: URLSearchParams;

  /**
   * `address` is the folder of the document, with its query parameters if it has any. `reload` is called when the server no longer
   * has the columns of this document, and returns whether the page loads the newer one.
   */
  constructor(
    address: string,
    private readonly reload: () => boolean = () => false,
  ) {
    const [path = "", query = ""] = address.split("?");
    this.prefix = path.replace(/\/$/, "");
    this.parameters = new URLSearchParams(query);
  }

  async report(): Promise<Report> {
    const response = await this.get("report.json");
    this.tag = (response.headers.get("ETag") ?? "").replace(/^W\/|"/g, "");
    const created = Date.parse(response.headers.get("Last-Modified") ?? "");
    this.created = Number.isNaN(created) ? "" : new Date(created).toISOString();
    return (await response.json()) as Report;
  }

  async raw(block: Block): Promise<Raw> {
    try {
      return await (await this.get(`blocks/${encodeURIComponent(block.block)}`, { of: this.tag })).arrayBuffer();
    } catch (error) {
      if (!(error instanceof Replaced)) throw error;
      // All columns of a page fail at once: reload it once.
      this.reloads ??= this.reload();
      if (!this.reloads) throw error;
      // The page that waits for this column is about to go.
      return new Promise(() => undefined);
    }
  }

  private async get(path: string, extra: Record<string, string> = {}): Promise<Response> {
    const parameters = new URLSearchParams(this.parameters);
    for (const [name, value] of Object.entries(extra)) if (value) parameters.set(name, value);
    const query = parameters.size > 0 ? `?${parameters}` : "";
    const response = await fetch(`${this.prefix}/${path}${query}`, { headers: pageHeaders() });
    if (response.ok) return response;
    const message = await response.json().then(
      (answer: { error?: { message?: string } }) => answer.error?.message,
      () => undefined,
    );
    if (response.status === 410) throw new Replaced(message);
    throw new Error(message ?? `The server responded with status ${response.status} for ${path}`);
  }
}

/** Return the source embedded in the page, or the server that the page names, or null. */
export function pickSource(): Source | null {
  const packed = document.getElementById("daskscope-report");
  if (packed) return new EmbeddedSource(packed);
  const prefix = document.querySelector('meta[name="daskscope-source"]')?.getAttribute("content");
  return prefix ? new HttpSource(prefix) : null;
}

/** Return the comparison embedded in the page. */
export async function embeddedComparison(): Promise<Comparison> {
  const packed = document.getElementById("daskscope-comparison")?.textContent.trim() ?? "";
  return JSON.parse(new TextDecoder().decode(await inflate(packed))) as Comparison;
}

export async function loadReport(source: Source): Promise<Report> {
  const report = await source.report();
  if (report.schema !== SCHEMA) {
    throw new Error(
      `This viewer supports report version ${SCHEMA}, but the report has version ${report.schema}. Create the report again from the recording.`,
    );
  }
  return report;
}

/** Columns that the page has made itself, by the name of their block. */
export class MemorySource {
  readonly columns = new Map<string, Numbers>();

  /** Add a column and return its block. */
  add(block: string, values: Numbers): Block {
    this.columns.set(block, values);
    return { block, dtype: "f64", length: values.length };
  }
}

/** Columns of a report, each decoded once. */
export class Columns {
  private readonly numbersOf = new Map<string, Promise<Numbers>>();
  private readonly linesOf = new Map<string, Promise<string[]>>();

  /** Columns load only after `gate` resolves, so that the first paint does not compete with them. */
  constructor(
    readonly source: Source | MemorySource,
    private readonly gate: Promise<void> = Promise.resolve(),
  ) {}

  numbers(block: Block): Promise<Numbers> {
    let found = this.numbersOf.get(block.block);
    if (!found) {
      const { source } = this;
      found =
        source instanceof MemorySource
          ? Promise.resolve(source.columns.get(block.block) ?? new Uint8Array(0))
          : this.gate.then(() => source.raw(block)).then((raw) => decodeNumbers(block, raw));
      this.numbersOf.set(block.block, found);
    }
    return found;
  }

  lines(block: Block): Promise<string[]> {
    let found = this.linesOf.get(block.block);
    if (!found) {
      const { source } = this;
      found =
        source instanceof MemorySource
          ? Promise.resolve([])
          : this.gate.then(() => source.raw(block)).then((raw) => decodeLines(block, raw));
      this.linesOf.set(block.block, found);
    }
    return found;
  }
}
