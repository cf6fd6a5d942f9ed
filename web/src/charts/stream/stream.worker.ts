import type { Ask, Reply } from "./messages";
import { RequestHandler } from "./request-handler";

interface Scope {
  onmessage: ((event: MessageEvent<{ id: number; ask: Ask }>) => void) | null;
  postMessage(reply: Reply, transfer: Transferable[]): void;
}

const scope = self as unknown as Scope;
const answerer = new RequestHandler();

scope.onmessage = (event) => {
  const { id, ask } = event.data;
  answerer.answer(ask).then(
    (value) => scope.postMessage({ id, value }, value instanceof ArrayBuffer ? [value] : []),
    (error: unknown) => scope.postMessage({ id, error: String(error) }, []),
  );
};
