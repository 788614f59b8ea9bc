// The curves of all trials in one chart: the best in front, and those that were stopped faint behind.

import { useMemo } from "preact/hooks";
import { Chart, OptionBar } from "../charts/charts";
import type { Line } from "../charts/curves";
import type { Highlight } from "../charts/pointer";
import { useChartOptions } from "../charts/use_options";
import { ZoomHelp } from "../charts/zoom_bar";
import type { Sweep, Trial } from "../model";
import { useDark } from "../theme";
import { labelOf } from "./ranking";

interface TrialCurvesProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  best: Trial | null;
  highlight: Highlight;
}

/** The lines of trials with two points or more; what is drawn later lies above. */
export function linesOf(metric: string, trials: readonly Trial[], looks: ReadonlyMap<number, string>, best: Trial | null): Line[] {
  const rank = (trial: Trial) => (trial === best ? 3 : trial.state === "Succeeded" ? 1 : trial.state === "Running" ? 2 : 0);
  return trials
    .filter(({ points }) => points.length > 1)
    .sort((a, b) => rank(a) - rank(b))
    .map((trial): Line => {
      const look = looks.get(trial.number) ?? "";
      const steps = trial.points.map(([step]) => step);
      const values = trial.points.map(([, value]) => value ?? NaN);
      return {
        id: String(trial.number),
        label: labelOf(trial),
        tone: 0,
        color: `--${look}`,
        isFaint: trial.state === "Pruned" || trial.state === "Failed",
        points: { kind: "eval", name: metric, times: steps, steps, hasSteps: true, values },
      };
    });
}

export function TrialCurves({ sweep, trials, looks, best, highlight }: TrialCurvesProperties) {
  const isDark = useDark();
  const { options, setOptions } = useChartOptions();
  const lines = useMemo(() => linesOf(sweep.metric, trials, looks, best), [sweep.metric, trials, looks, best]);
  return (
    <section aria-labelledby="curves-title">
      <h2 id="curves-title">Curves</h2>
      {lines.length > 0 ? (
        <>
          <OptionBar options={options} setOptions={setOptions} hasMany={false} count={null} />
          <Chart key={String(isDark)} name={sweep.metric} lines={lines} options={{ ...options, axis: "step" }} isCompared highlight={highlight} />
          <ZoomHelp />
        </>
      ) : (
        <p class="nothing">No trial has reported two values yet.</p>
      )}
    </section>
  );
}
