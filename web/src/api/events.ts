import { pageHeaders } from "./page-secret";

/** Milliseconds before a stream that ended is opened again. */
const RETRY_MS = 3_000;

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
export function subscribe(
  url: string,
  handle: (event: string, data: string) => void,
  state: (open: boolean) => void,
): () => void {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const follow = async () => {
    try {
      const response = await fetch(url, {
        headers: { ...pageHeaders(), Accept: "text/event-stream" },
        signal: stop.signal,
      });
      // Signed out, or no longer a member: asking again would not help.
      if (response.status === 401 || response.status === 403) stop.abort();
      if (response.ok && response.body) {
        state(true);
        const parse = eventParser(handle);
        const decoder = new TextDecoder();
        const reader = response.body.getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read())
          parse(decoder.decode(part.value, { stream: true }));
      }
    } catch {
      // The connection broke, or the page stopped it.
    }
    state(false);
    if (!stop.signal.aborted) timer = setTimeout(follow, RETRY_MS);
  };
  void follow();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}
