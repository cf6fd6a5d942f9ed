import { useModel } from "../../model/page/hooks";
import { Swatch } from "../basics";

export function PrefixName({ prefix }: { prefix: string }) {
  const model = useModel();
  return (
    <span class="px" title={prefix}>
      <Swatch colour={model.colour(prefix)} />
      <span class="mono cut">{prefix}</span>
    </span>
  );
}
