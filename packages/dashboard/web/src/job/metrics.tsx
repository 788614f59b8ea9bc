// The metrics of one training: its curves, or the last values where there are none.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Charts } from "../charts/charts";
import { familyOf } from "../charts/family";
import { useChartOptions } from "../charts/use_options";
import { short } from "../format";
import type { Points, TrainerStatus } from "../model";

export function MetricCharts({ curves }: { curves: ReadonlyMap<string, Points> }) {
  const setting = useChartOptions();
  const lines = useMemo(
    () => {
      const counts = new Map<string, number>();
      return Array.from(curves, ([id, points]) => {
        const { name, side } = familyOf(points);
        const others = counts.get(`${side} ${name}`) ?? 0;
        counts.set(`${side} ${name}`, others + 1);
        // Training and evaluation have the same two colours in all charts.
        return { id, label: "", points, tone: 2 * others + (side === "eval" ? 1 : 0) };
      });
    },
    [curves],
  );
  return <Charts lines={lines} {...setting} />;
}

/** What is left when there is no log to read curves from. */
export function LastValues({ of, none }: { of: TrainerStatus | null; none: ComponentChildren }) {
  const values = [
    ...Object.entries(of?.trainMetrics ?? {}).map(([name, value]) => [name, "", value] as const),
    ...Object.entries(of?.evalMetrics ?? {}).map(([name, value]) => [name, "evaluation", value] as const),
  ];
  if (values.length === 0) return <p class="nothing">{none}</p>;
  return (
    <dl class="facts">
      {values.map(([name, kind, value]) => (
        <div key={`${kind}/${name}`}>
          <dt>
            {name} {kind && <span class="tag">{kind}</span>}
          </dt>
          <dd>{short(Number(value)) || value}</dd>
        </div>
      ))}
    </dl>
  );
}
