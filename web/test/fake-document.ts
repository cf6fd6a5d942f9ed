import { type ComponentChild, render } from "preact";
import { vi } from "vitest";

/** The parts of a DOM node that Preact uses to show static content. */
export class FakeNode {
  parentNode: FakeNode | null = null;
  readonly childNodes: FakeNode[] = [];
  readonly attributes = new Map<string, string>();
  readonly style = { setProperty: () => undefined, cssText: "" };
  readonly namespaceURI = "http://www.w3.org/1999/xhtml";
  readonly ownerDocument = DOCUMENT;

  constructor(
    readonly localName: string,
    public data = "",
  ) {}

  get nodeType(): number {
    return this.localName ? 1 : 3;
  }
  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null;
  }
  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }
  get textContent(): string {
    return this.data + this.childNodes.map((child) => child.textContent).join("");
  }

  insertBefore(node: FakeNode, before: FakeNode | null): FakeNode {
    node.remove();
    node.parentNode = this;
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, node);
    return node;
  }
  appendChild(node: FakeNode): FakeNode {
    return this.insertBefore(node, null);
  }
  removeChild(node: FakeNode): void {
    node.remove();
  }
  remove(): void {
    const siblings = this.parentNode?.childNodes;
    siblings?.splice(siblings.indexOf(this), 1);
    this.parentNode = null;
  }
  contains(node: FakeNode): boolean {
    return node === this || this.childNodes.some((child) => child.contains(node));
  }
  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name, String(value));
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }
  addEventListener(): void {}
  removeEventListener(): void {}

  /** Return the elements below this one with an attribute, in document order. */
  all(attribute: string, value?: string): FakeNode[] {
    const found = this.childNodes.flatMap((child) => child.all(attribute, value));
    const own = this.attributes.get(attribute);
    return own !== undefined && (value === undefined || own === value) ? [this, ...found] : found;
  }
  /** Return the text of the only element below this one with a test ID; white space is collapsed. */
  textOf(testid: string): string {
    const found = this.all("data-testid", testid);
    if (found.length !== 1) throw new Error(`${found.length} elements have the test ID ${testid}`);
    return found[0].text;
  }
  get text(): string {
    return this.textContent.replace(/\s+/g, " ").trim();
  }
}

const DOCUMENT = {
  title: "",
  createElement: (name: string) => new FakeNode(name),
  createElementNS: (_: string, name: string) => new FakeNode(name),
  createTextNode: (data: string) => new FakeNode("", data),
  querySelector: () => null,
};

/** Render into a fake document, with real components and hooks, until vi.unstubAllGlobals(). Waits until nothing is loading, unless `loading` is set. Layout and events are for the browser tests. */
export async function renderFake(content: ComponentChild, { loading = false } = {}): Promise<FakeNode> {
  class NoObserver {
    observe(): void {}
    disconnect(): void {}
  }
  vi.stubGlobal("document", { ...DOCUMENT, documentElement: new FakeNode("html") });
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
  vi.stubGlobal("ResizeObserver", NoObserver);
  vi.stubGlobal("MutationObserver", NoObserver);
  const root = new FakeNode("div");
  render(content, root as unknown as Element);
  if (loading) return root;
  // Effects ask the API, its answers arrive, and their state is rendered.
  await vi.waitFor(() => {
    if (root.all("aria-busy", "true").length > 0) throw new Error(`Still loading: ${root.text}`);
  });
  return root;
}
