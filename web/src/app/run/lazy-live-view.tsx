import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import type { LiveView as View } from "./live-view";

/** The live view, which has its own file: most clusters that people open have ended. */
export function LiveView(props: Parameters<typeof View>[0]) {
  const code = useResource(() => import("./live-view"), []);
  return <Loaded from={code}>{(loaded) => <loaded.LiveView {...props} />}</Loaded>;
}
