import { type Raw, decodeLines, decodeNumbers, type Numbers } from "./decode";
import { type Block, type Report, SCHEMA } from "./schema.gen";

/** Where a report comes from. Nothing else in the viewer reads the page or the network. */
export interface Source {
  report(): Promise<Report>;
  /** The compressed bytes of a column, as they are. */
  raw(block: Block): Promise<Raw>;
}

class EmbeddedSource implements Source {
  constructor(private readonly json: Element) {}

  async report(): Promise<Report> {
    return JSON.parse(this.json.textContent) as Report;
  }

  async raw(block: Block): Promise<Raw> {
    const found = document.getElementById(`daskscope-block-${block.block}`);
    if (!found) throw new Error(`Column ${block.block} is missing from this page`);
    return found.textContent.trim();
  }
}

export class HttpSource implements Source {
  /** Which making of the document was read: its columns must be of the same one. */
  private tag = "";

  constructor(private readonly prefix: string) {}

  async report(): Promise<Report> {
    const response = await this.get("report.json");
    this.tag = (response.headers.get("ETag") ?? "").replace(/^W\/|"/g, "");
    return (await response.json()) as Report;
  }

  async raw(block: Block): Promise<Raw> {
    return (await this.get(`blocks/${encodeURIComponent(block.block)}${this.tag ? `?of=${encodeURIComponent(this.tag)}` : ""}`)).arrayBuffer();
  }

  private async get(path: string): Promise<Response> {
    const response = await fetch(`${this.prefix.replace(/\/$/, "")}/${path}`);
    if (!response.ok) throw new Error(`The server answered ${response.status} for ${path}`);
    return response;
  }
}

/** The data that came with the page, else the server the page names, else nothing. */
export function pickSource(): Source | null {
  const json = document.getElementById("daskscope-report");
  if (json) return new EmbeddedSource(json);
  const prefix = document.querySelector('meta[name="daskscope-source"]')?.getAttribute("content");
  return prefix ? new HttpSource(prefix) : null;
}

export async function loadReport(source: Source): Promise<Report> {
  const report = await source.report();
  if (report.schema !== SCHEMA) {
    throw new Error(`This page reads reports of version ${SCHEMA}, and this one has version ${report.schema}. Make it again with the daskscope that made the recording.`);
  }
  return report;
}

/** Decodes each column once. */
export class Columns {
  private readonly numbersOf = new Map<string, Promise<Numbers>>();
  private readonly linesOf = new Map<string, Promise<string[]>>();

  /** ``gate``: columns are not read before it opens, so that the first picture has the machine for itself. */
  constructor(
    readonly source: Source,
    private readonly gate: Promise<void> = Promise.resolve(),
  ) {}

  numbers(block: Block): Promise<Numbers> {
    let found = this.numbersOf.get(block.block);
    if (!found) {
      found = this.gate.then(() => this.source.raw(block)).then((raw) => decodeNumbers(block, raw));
      this.numbersOf.set(block.block, found);
    }
    return found;
  }

  lines(block: Block): Promise<string[]> {
    let found = this.linesOf.get(block.block);
    if (!found) {
      found = this.gate.then(() => this.source.raw(block)).then((raw) => decodeLines(block, raw));
      this.linesOf.set(block.block, found);
    }
    return found;
  }
}
