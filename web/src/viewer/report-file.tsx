import { useRef } from "preact/hooks";
import type { Model } from "../model/model";
import { copy } from "../widgets/clipboard";
import { IconButton, SkipLink, TopTools } from "../widgets/controls/topbar";
import { Brand } from "../widgets/icon";
import { Viewer } from "./viewer";

/** A report as a standalone page. */
export function ReportFile({ model }: { model: Model }) {
  const main = useRef<HTMLElement>(null);
  return (
    <Viewer model={model} main={main}>
      {(open) => (
        <>
          <SkipLink to={main} />
          <header class="topbar">
            <Brand href="#overview" />
            <span class="grow" />
            <TopTools open={open}>
              <IconButton icon="share" label="Copy link" onClick={() => copy(model.nav.link(), "Link copied")} />
            </TopTools>
          </header>
        </>
      )}
    </Viewer>
  );
}
