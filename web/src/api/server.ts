/** The HTTP API. Only `server.ts`, `events.ts` and `source.ts` use the network. */

import { pageHeaders } from "./page-secret";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Page<T> {
  items: T[];
  next: string | null;
}

/** The API of one account. */
export class Api {
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly root: string,
    readonly account: string,
  ) {}

  url(path: string, query: Query = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, account: this.account || undefined }))
      if (value !== undefined && value !== "") search.set(name, String(value));
    const text = search.toString();
    return `${this.root}/api/v1/${path}${text ? `?${text}` : ""}`;
  }

  get<T>(path: string, query?: Query): Promise<T> {
    return this.request<T>("GET", this.url(path, query));
  }

  async send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, query?: Query): Promise<T> {
    const answer = await this.request<T>(method, this.url(path, query), body ?? (method === "DELETE" ? undefined : {}));
    for (const listener of this.listeners) listener();
    return answer;
  }

  /** Call a function after everything that this page changed. Returns a function that stops it. */
  onSent(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private async request<T>(method: string, url: string, body?: unknown): Promise<T> {
    let response: Response;
    try {
      response = await fetch(url, {
        method,
        headers: { ...pageHeaders(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new ApiError(0, "unreachable", "The server did not respond.");
    }
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer as T;
    const error = (answer as { error?: { code?: string; message?: string } } | null)?.error;
    throw new ApiError(
      response.status,
      error?.code ?? "failed",
      error?.message ?? `The server responded with status ${response.status}.`,
    );
  }

  /** Subscribe to the IDs of changed clusters. Returns a function that unsubscribes. */
  live(changed: (clusters: string[]) => void, state: (open: boolean) => void): () => void {
    return subscribe(this.url("live"), (event, data) => event === "changed" && changed(JSON.parse(data)), state);
  }
}

/** Milliseconds before a stream that ended is opened again. */
const RETRY_MS = 3_000;
/** A stream that was silent for so long is broken: the server sends a comment after 15 s without a change. */
const SILENT_MS = 45_000;

/** Parse Server-Sent Events. Returns a function for the text as it arrives. */
export function eventParser(handle: (event: string, data: string) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const blocks = (rest + text.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      let event = "message";
      const data: string[] = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).trim());
      }
      if (data.length > 0) handle(event, data.join("\n"));
    }
  };
}

/**
 * Follow a stream of Server-Sent Events, and open it again when it ends. Unlike EventSource, this sends the headers of a
 * page. Returns a function that stops it.
 */
function subscribe(
  url: string,
  handle: (event: string, data: string) => void,
  state: (open: boolean) => void,
): () => void {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const follow = async () => {
    const silent = new AbortController();
    let watchdog = setTimeout(() => silent.abort(), SILENT_MS);
    try {
      const response = await fetch(url, {
        headers: { ...pageHeaders(), Accept: "text/event-stream" },
        signal: AbortSignal.any([stop.signal, silent.signal]),
      });
      // Signed out, or no longer a member: asking again would not help.
      if (response.status === 401 || response.status === 403) stop.abort();
      if (response.ok && response.body) {
        state(true);
        const parse = eventParser(handle);
        const decoder = new TextDecoder();
        const reader = response.body.getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          clearTimeout(watchdog);
          watchdog = setTimeout(() => silent.abort(), SILENT_MS);
          parse(decoder.decode(part.value, { stream: true }));
        }
      }
    } catch {
      // The connection broke, or the page stopped it.
    }
    clearTimeout(watchdog);
    state(false);
    if (!stop.signal.aborted) timer = setTimeout(follow, RETRY_MS);
  };
  void follow();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}
