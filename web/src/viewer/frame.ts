import { type ComponentChildren, createContext } from "preact";
import type { Answer } from "../api/schema.gen";

/** What the app adds to the views of a run. A report file has nothing of it. */
export interface Frame {
  /** Whether the title and the state of the run stand above the views. */
  titled: boolean;
  /** Panels at the end of the overview. */
  below: ComponentChildren;
  /** Replaces the headline of the document, which cannot know that a cluster is lost. */
  answer: Answer | null;
}

export const NO_FRAME: Frame = { titled: false, below: null, answer: null };
export const FrameContext = createContext<Frame>(NO_FRAME);
