// The last values of a metric that the dashboard has seen.

import { short } from "../format";
import type { Trend } from "../model";

const WIDTH = 64;
const HEIGHT = 20;

/** The points of a line that fills the picture; a constant is in its middle. */
export function line(values: readonly number[]): string {
  const least = Math.min(...values);
  const range = Math.max(...values) - least;
  const step = WIDTH / Math.max(values.length - 1, 1);
  return values
    .map((value, index) => {
      const height = range > 0 ? (value - least) / range : 0.5;
      return `${(index * step).toFixed(1)},${((HEIGHT - 2) * (1 - height) + 1).toFixed(1)}`;
    })
    .join(" ");
}

export function Sparkline({ of: { name, isEval, trend } }: { of: Trend }) {
  const label = `${isEval ? "eval " : ""}${name}`;
  return (
    <span class="sparkline" title={label}>
      {trend.length > 1 && (
        <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
          <polyline points={line(trend)} />
        </svg>
      )}
      <span class="value">{short(trend.at(-1))}</span> <span class="label">{label}</span>
    </span>
  );
}
