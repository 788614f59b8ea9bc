// Metrics with one value, which no chart could show.

import { short } from "../format";
import { Grid } from "../parts";
import { familyOf } from "./family";
import type { Line } from "./curves";
import { position } from "./pointer";

export function SingleValues({ of }: { of: readonly Line[] }) {
  if (of.length === 0) return null;
  return (
    <Grid label="Single values" titles={["Reported once", "Value", "At", "Kind"]}>
      {of.map(({ id, points }) => (
        <tr key={id}>
          <th scope="row">{points.name}</th>
          <td class="number">{short(points.values[0]) || String(points.values[0])}</td>
          <td class="number">{points.steps[0]! >= 0 ? position(points.steps[0]!, points.hasSteps ? "step" : "epoch") : ""}</td>
          <td>{familyOf(points).side === "eval" ? "evaluation" : "training"}</td>
        </tr>
      ))}
    </Grid>
  );
}
