import type { Raw } from "../../api/decode";
import type { Report } from "../../api/schema.gen";
import type { Source } from "../../api/source";
import {
  DETAIL_COLUMNS,
  DRAWN_COLUMNS,
  type StreamView,
  type TaskDetail,
  type TaskMark,
  type TaskStream,
} from "../../model/stream";
import type { Answers, Ask, Reply } from "./messages";
import { RequestHandler } from "./request-handler";
import StreamWorker from "./stream.worker?worker&inline";

type Started = { worker: Worker; failed: Promise<never> };

let warm: Started | null = null;

/** Start a worker. It can fail before anybody waits for it, so its error is kept. */
function startWorker(): Started {
  const worker = new StreamWorker();
  const failed = new Promise<never>((_, reject) => {
    worker.onerror = (event) => reject(new Error(event.message));
  });
  failed.catch(() => undefined);
  return { worker, failed };
}

/** Start the worker while the page still loads the document. */
export function warmUp(): void {
  try {
    warm = startWorker();
  } catch {
    warm = null;
  }
}

type Waiting = { resolve: (value: Answers[keyof Answers]) => void; reject: (error: Error) => void };

/** The page's side of the task stream engine, which runs in a worker if the browser allows it. */
export class StreamClient implements TaskStream {
  private worker: Worker | null = null;
  private readonly local = new RequestHandler();
  private readonly waiting = new Map<number, Waiting>();
  private next = 0;
  private loaded: Promise<void> | null = null;
  private spare: ArrayBuffer | null = null;
  private closed = false;
  readonly ready: Promise<void>;
  /** Resolves when the bars were sent to the worker. Requests after that are answered once it has decoded them. */
  private readonly started: Promise<void>;
  private resolveStarted: () => void = () => undefined;
  /** Resolves with the first paint, or after four seconds. */
  readonly painted: Promise<void>;
  private resolvePainted: () => void = () => undefined;

  constructor(
    private readonly source: Source,
    private readonly report: Report,
  ) {
    this.painted = new Promise((resolve) => {
      this.resolvePainted = resolve;
      setTimeout(resolve, 4000);
    });
    this.started = new Promise((resolve) => {
      this.resolveStarted = resolve;
    });
    this.ready = this.start().then(() => void performance.mark("daskscope-stream-ready"));
  }

  private async raws(names: readonly string[]): Promise<Partial<Record<string, Raw>>> {
    const columns = this.report.stream.columns;
    const found = names.filter((name) => columns[name]);
    const raws = await Promise.all(found.map((name) => this.source.raw(columns[name])));
    return Object.fromEntries(found.map((name, i) => [name, raws[i]]));
  }

  private async start(): Promise<void> {
    const { stream, start_us, stop_us } = this.report;
    const raws = await this.raws(DRAWN_COLUMNS);
    if (this.closed) return;
    const init = { stream, raws, end: (stop_us - start_us) / stream.tick_us };
    try {
      const { worker, failed } = warm ?? startWorker();
      warm = null;
      worker.onmessage = (event: MessageEvent<Reply>) => this.receive(event.data);
      this.worker = worker;
      const decoded = this.ask({ kind: "init", init });
      this.resolveStarted();
      await Promise.race([decoded, failed]);
    } catch {
      this.worker = null;
      const local = this.local.answer({ kind: "init", init });
      for (const { reject } of this.waiting.values()) reject(new Error("The worker failed"));
      this.waiting.clear();
      this.resolveStarted();
      await local;
    }
  }

  /** Stop the worker. Requests in progress are not answered. */
  close(): void {
    this.closed = true;
    this.worker?.terminate();
  }

  private receive(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    if (!waiting) return;
    this.waiting.delete(reply.id);
    if (reply.error !== undefined) waiting.reject(new Error(reply.error));
    else waiting.resolve(reply.value ?? null);
  }

  private ask<K extends Ask["kind"]>(
    ask: Extract<Ask, { kind: K }>,
    transfer: Transferable[] = [],
  ): Promise<Answers[K]> {
    const worker = this.worker;
    if (!worker) return this.local.answer(ask) as Promise<Answers[K]>;
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: (value) => resolve(value as Answers[K]), reject });
      worker.postMessage({ id, ask }, transfer);
    });
  }

  async draw(view: StreamView): Promise<ArrayBuffer> {
    await this.started;
    const size = view.width * view.height * 4;
    const pixels = this.spare?.byteLength === size ? this.spare : new ArrayBuffer(size);
    this.spare = null;
    try {
      return await this.ask({ kind: "draw", view, pixels }, [pixels]);
    } catch {
      // The worker failed and took the buffer with it: draw in the page.
      await this.ready;
      return this.ask({ kind: "draw", view, pixels: new ArrayBuffer(size) });
    }
  }

  recycle(pixels: ArrayBuffer): void {
    this.resolvePainted();
    this.spare = pixels;
  }

  async hit(lane: number, lanes: number, t: number, slack: number): Promise<number> {
    await this.ready;
    return this.ask({ kind: "hit", lane, lanes, t, slack });
  }

  async detail(task: number): Promise<TaskDetail | null> {
    await this.ready;
    await this.loadDetails();
    return this.ask({ kind: "detail", task });
  }

  async beside(task: number, across: number, down: number): Promise<number> {
    await this.ready;
    return this.ask({ kind: "beside", task, across, down });
  }

  async first(t0: number, t1: number): Promise<number> {
    await this.ready;
    return this.ask({ kind: "first", t0, t1 });
  }

  async tasksIn(t0: number, t1: number, limit: number): Promise<{ rows: TaskDetail[]; of: number }> {
    await this.ready;
    await this.loadDetails();
    return this.ask({ kind: "tasks", t0, t1, limit });
  }

  async find(text: string, limit: number): Promise<{ tasks: number[]; of: number }> {
    await this.ready;
    await this.loadDetails();
    return this.ask({ kind: "find", text, limit });
  }

  async marks(tasks: readonly number[]): Promise<TaskMark[]> {
    await this.ready;
    return this.ask({ kind: "marks", tasks });
  }

  /** Load the large detail columns on first use. */
  private loadDetails(): Promise<void> {
    this.loaded ??= this.raws(DETAIL_COLUMNS).then(async (raws) => void (await this.ask({ kind: "more", raws })));
    return this.loaded;
  }
}
