/** Asking the server. Only this file and `source.ts` fetch. */

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

/** The path a reverse proxy serves us under; empty at the top. */
export function rootPath(): string {
  return document.querySelector('meta[name="daskscope-root"]')?.getAttribute("content") ?? "";
}

/** One account of the server. */
export class Api {
  constructor(
    readonly root: string,
    readonly account: string,
  ) {}

  address(path: string, query: Query = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, account: this.account || undefined })) if (value !== undefined && value !== "") search.set(name, String(value));
    const text = search.toString();
    return `${this.root}/api/v1/${path}${text ? `?${text}` : ""}`;
  }

  get<T>(path: string, query?: Query): Promise<T> {
    return this.ask<T>("GET", this.address(path, query));
  }

  send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, query?: Query): Promise<T> {
    return this.ask<T>(method, this.address(path, query), body ?? (method === "DELETE" ? undefined : {}));
  }

  private async ask<T>(method: string, address: string, body?: unknown): Promise<T> {
    let response: Response;
    try {
      response = await fetch(address, { method, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch {
      throw new ApiError(0, "away", "The server did not answer.");
    }
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer as T;
    const error = (answer as { error?: { code?: string; message?: string } } | null)?.error;
    throw new ApiError(response.status, error?.code ?? "failed", error?.message ?? `The server answered ${response.status}.`);
  }

  /** Ids of clusters that change, as they do. */
  live(changed: (clusters: string[]) => void, state: (open: boolean) => void): () => void {
    const stream = new EventSource(this.address("live"));
    stream.addEventListener("changed", (event) => changed(JSON.parse((event as MessageEvent<string>).data) as string[]));
    stream.addEventListener("open", () => state(true));
    stream.addEventListener("error", () => state(false));
    return () => stream.close();
  }
}
