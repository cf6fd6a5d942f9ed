import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import type { LiveView } from "./live-view";

/** The live view, which has its own file: most clusters that people open have ended. */
export function LazyLiveView(props: Parameters<typeof LiveView>[0]) {
  const code = useResource(() => import("./live-view"), []);
  return <Loaded from={code}>{(loaded) => <loaded.LiveView {...props} />}</Loaded>;
}
