import { BarRoom, LiveTaskStream } from "../../charts/stream/live";
import { liveDocument } from "../../model/live/live-document";
import type { LiveLanes } from "../../model/live/live-lanes";
import { LiveRun } from "../../model/live/live-run";
import { Model, type PrefixOrder } from "../../model/model";
import { untilNow } from "../../model/time";

/** A new document takes 5 to 20 ms, so that sums and tables follow once a second; the task stream follows every increment. */
const RENEW_MS = 1000;

/** A live run as the panels of a document show it. */
export class LiveModel {
  readonly run: LiveRun;
  /** Null before the first increment. */
  model: Model | null = null;
  /** Seconds that the page shows while it follows; 0 for the whole run. */
  private length = 0;
  /** Microseconds since the origin. */
  private now = 0;
  private madeMs = Number.NEGATIVE_INFINITY;
  private lanes: LiveLanes | null = null;
  private readonly room = new BarRoom();
  private shape = "";
  /** Executions that had ended when the reader selected a time. */
  private tasksThen = 0;

  /** `changed` is called when there is a new model, and whenever the reader selects a time or goes back to now. */
  constructor(
    private readonly order: PrefixOrder,
    private readonly changed: () => void,
    /** Nothing before this moment is of interest; 0 for the whole run. */
    private readonly startUs = 0,
  ) {
    this.run = new LiveRun(order);
  }

  /** Whether the reader selected a time, which stays until they go back. */
  get isPaused(): boolean {
    return this.model !== null && this.model.nav.state.selection.isNow !== true;
  }

  /** Executions that ended since the reader selected a time. */
  get missed(): number {
    return this.run.tasks - this.tasksThen;
  }

  /** How long nothing has arrived, in microseconds, as of the last time the page moved. */
  get silentUs(): number {
    return Math.max(0, this.now - this.run.knownUntil);
  }

  /** How long nothing has run since something did; 0 if nothing has run yet. */
  get idleUs(): number {
    const last = 1e6 * this.run.busy.last;
    return last > 0 ? Math.max(0, this.now - last) : 0;
  }

  /** Show all that has arrived, and the time until now. */
  advance(atMs: number): void {
    const { run } = this;
    const now = Math.max(1e6, run.now(atMs));
    this.now = now;
    const isFirst = this.lanes !== run.lanes;
    // New lanes and prefixes are shown at once: the task stream needs their places and colours.
    const shape = `${run.lanes.revision} ${run.prefixes.length} ${run.workers.workers.size} ${run.isLive}`;
    if (isFirst || shape !== this.shape || atMs - this.madeMs >= RENEW_MS) {
      this.madeMs = atMs;
      this.lanes = run.lanes;
      this.shape = shape;
      this.renew(now, isFirst);
    }
    if (!this.isPaused) this.moveTo(now);
  }

  /** Follow the run again, with the last seconds of this length. */
  follow(seconds: number, atMs: number): void {
    this.length = seconds * 1e6;
    if (!this.model) return;
    this.moveTo(Math.max(1e6, this.run.now(atMs)));
    this.renew(Math.max(1e6, this.run.now(atMs)), false);
  }

  /** Stay at the time that is shown. */
  pause(): void {
    const nav = this.model?.nav;
    nav?.select({ ...nav.state.selection, isNow: false, whole: false });
  }

  private moveTo(now: number): void {
    const most = this.startUs > 0 ? Math.max(1e6, now + this.run.originUs - this.startUs) : 0;
    const length = most > 0 && this.length > 0 ? Math.min(most, this.length) : most || this.length;
    this.model?.nav.follow(untilNow(this.model.axis, now, length));
  }

  private renew(now: number, isFirst: boolean): void {
    const document = liveDocument(this.run, now);
    const old = this.model?.nav;
    const stream = new LiveTaskStream(this.run, document, this.room);
    this.model = new Model(document.report, document.source, stream, old ?? false, this.order, this.run.knownUntil);
    const { nav } = this.model;
    if (!old) {
      this.moveTo(now);
      let wasPaused = false;
      nav.subscribe(() => {
        if (!wasPaused && !this.isPaused) return;
        if (!wasPaused) this.tasksThen = this.run.tasks;
        wasPaused = this.isPaused;
        this.changed();
      });
    } else if (isFirst && nav.params.item) nav.set({ item: undefined });
    this.changed();
  }
}
