import { StreamEngine } from "./engine";
import type { Answers, Ask } from "./messages";

/** Handle requests with an engine. Runs in the worker, or in the page without workers. */
export class RequestHandler {
  private engine: Promise<StreamEngine> | null = null;
  private prepared = false;

  async answer(ask: Ask): Promise<Answers[keyof Answers]> {
    if (ask.kind === "init") {
      this.engine = StreamEngine.load(ask.init);
      await this.engine;
      return null;
    }
    if (!this.engine) throw new Error("The task stream is not loaded");
    const engine = await this.engine;
    switch (ask.kind) {
      case "draw":
        engine.draw(ask.view, new Uint32Array(ask.pixels));
        if (!this.prepared) setTimeout(() => engine.prepare(), 60);
        this.prepared = true;
        return ask.pixels;
      case "hit":
        return engine.hit(ask.lane, ask.lanes, ask.t, ask.slack);
      case "detail":
        return engine.detail(ask.task);
      case "beside":
        return engine.beside(ask.task, ask.across, ask.down);
      case "first":
        return engine.first(ask.t0, ask.t1);
      case "tasks":
        return engine.tasksIn(ask.t0, ask.t1, ask.limit);
      case "more":
        await engine.loadDetails(ask.raws);
        return null;
      case "find":
        return engine.find(ask.text, ask.limit);
      case "marks":
        return engine.marks(ask.tasks);
    }
  }
}
