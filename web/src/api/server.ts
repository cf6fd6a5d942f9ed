/** The HTTP API. Only `server.ts`, `events.ts` and `source.ts` use the network. */

import { subscribe } from "./events";
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

  send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, query?: Query): Promise<T> {
    return this.request<T>(method, this.url(path, query), body ?? (method === "DELETE" ? undefined : {}));
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
