"""A page that attacks its visitor, and a site of another origin to show it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Frame, Page

#: Tries to attack the visitor in every way and lists what worked.
HOSTILE = """<!doctype html><title>hostile</title><pre id="out"></pre><script>
const got = {};
async function tryIt(name, work) {
  const late = new Promise((resolve, reject) => setTimeout(reject, 1000));
  try { got[name] = String(await Promise.race([work(), late])); } catch (error) { got[name] = "refused"; }
}
(async () => {
  await tryIt("cookie", () => document.cookie || "refused");
  await tryIt("localStorage", () => localStorage.getItem("canary"));
  await tryIt("sessionStorage", () => sessionStorage.length);
  await tryIt("indexedDB", () => new Promise((resolve, reject) => {
    const asked = indexedDB.open("x"); asked.onsuccess = () => resolve("open"); asked.onerror = reject;
  }));
  await tryIt("parent", () => { if (parent === window) throw 1; return parent.document.title; });
  await tryIt("opener", () => { if (!opener) throw 1; return opener.document.title; });
  await tryIt("top", () => { if (top === window) throw 1; top.location = "/healthz"; return "moved"; });
  await tryIt("fetch", async () => (await fetch("/api/v1/me", {credentials: "include"})).status);
  await tryIt("absolute fetch", async () => (await fetch(ORIGIN + "/api/v1/me", {credentials: "include"})).status);
  await tryIt("post", async () => (await fetch(ORIGIN + "/api/v1/tokens", {
    method: "POST", mode: "no-cors", credentials: "include", body: "{}"})).type);
  await tryIt("xhr", () => new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest(); asked.open("GET", ORIGIN + "/api/v1/me");
    asked.onload = () => resolve(asked.status); asked.onerror = reject; asked.send();
  }));
  await tryIt("beacon", () => { navigator.sendBeacon(ORIGIN + "/api/v1/tokens", "{}"); return "refused"; });
  await tryIt("event source", () => new Promise((resolve, reject) => {
    const asked = new EventSource(ORIGIN + "/api/v1/live"); asked.onopen = () => resolve("open"); asked.onerror = reject;
  }));
  await tryIt("image", () => new Promise((resolve, reject) => {
    const asked = new Image(); asked.onload = () => resolve("loaded"); asked.onerror = reject; asked.src = ORIGIN + "/healthz";
  }));
  await tryIt("frame", () => new Promise((resolve, reject) => {
    const frame = document.createElement("iframe"); frame.src = ORIGIN + "/api/v1/me";
    frame.onload = () => { try { resolve(frame.contentDocument.body.textContent || reject()); } catch (error) { reject(error); } };
    document.body.append(frame);
  }));
  await tryIt("popup", () => { if (!window.open(ORIGIN + "/healthz")) throw 1; return "opened"; });
  await tryIt("webrtc", () => new RTCPeerConnection().createDataChannel("x").label + "created");
  await tryIt("webrtc in a frame", () => new Promise((resolve, reject) => {
    const asked = "<script>parent.postMessage(typeof RTCPeerConnection, '*')<" + "/script>";
    window.onmessage = (event) => (event.data === "function" ? resolve("created") : reject());
    const frame = document.createElement("iframe"); frame.srcdoc = asked; document.body.append(frame);
    const host = document.createElement("div"); document.body.append(host);
    host.attachShadow({ mode: "closed" }).innerHTML = "<iframe></iframe>";
    const quoted = asked.replaceAll('"', "&quot;");
    host.setHTMLUnsafe(`<div><template shadowrootmode="closed"><iframe srcdoc="${quoted}"></iframe></template></div>`);
    setTimeout(reject, 500);
  }));
  await tryIt("worker", () => { navigator.serviceWorker.register; throw 1; });
  await tryIt("form", () => {
    const form = document.createElement("form"); form.method = "POST"; form.action = ORIGIN + "/api/v1/tokens";
    form.enctype = "text/plain"; form.target = "_self";
    document.body.append(form); form.submit(); return "refused";
  });
  document.getElementById("out").textContent = JSON.stringify(got);
  document.documentElement.dataset.done = "1";
})();
</script>"""


def outcome(frame: Page | Frame) -> dict[str, str]:
    frame.wait_for_selector("html[data-done='1']", state="attached")
    got: dict[str, str] = frame.evaluate("JSON.parse(document.getElementById('out').textContent)")
    return {name: value for name, value in got.items() if value != "refused"}


class Site:
    """A site with another host name."""

    def __init__(self, page: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://localhost:{self.server.server_address[1]}/"

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()
