// The curves of all trials in one chart: the best in front, and those that were stopped faint behind.

import { useMemo } from "preact/hooks";
import { Chart, OptionBar } from "../charts/charts";
import type { Line } from "../charts/curves";
import type { Highlight } from "../charts/pointer";
import { useChartOptions } from "../charts/use_options";
import { ZoomHelp } from "../charts/zoom_bar";
import type { Points, Sweep, Trial } from "../model";
import { useDark } from "../theme";
import { labelOf } from "./ranking";

interface TrialCurvesProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  /** Those of them that are in the chart. */
  shown: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  best: Trial | null;
  highlight: Highlight;
}

/** The lines of trials with two points or more; what is drawn later lies above. */
export function linesOf(metric: string, trials: readonly Trial[], looks: ReadonlyMap<number, string>, best: Trial | null): Line[] {
  const rank = (trial: Trial) => (trial === best ? 3 : trial.state === "Succeeded" ? 1 : trial.state === "Running" ? 2 : 0);
  return trials
    .filter(({ points }) => points.length > 1)
    .sort((a, b) => rank(a) - rank(b) || a.number - b.number)
    .map((trial): Line => {
      const look = looks.get(trial.number) ?? "";
      return {
        id: String(trial.number),
        label: labelOf(trial),
        tone: 0,
        color: `--${look}`,
        isFaint: trial.state === "Pruned" || trial.state === "Failed",
        points: pointsOf(metric, trial),
      };
    });
}

const known = new WeakMap<Trial, Points>();

/** The samples of a trial: the same object while nothing new has come, so that its line is not drawn again. */
function pointsOf(metric: string, trial: Trial): Points {
  const before = known.get(trial);
  if (before) return before;
  const steps = trial.points.map(([step]) => step);
  const points: Points = { kind: "eval", name: metric, times: steps, steps, hasSteps: true, values: trial.points.map(([, value]) => value ?? NaN) };
  known.set(trial, points);
  return points;
}

export function TrialCurves({ sweep, trials, shown, looks, best, highlight }: TrialCurvesProperties) {
  const isDark = useDark();
  const { options, setOptions } = useChartOptions();
  const lines = useMemo(() => linesOf(sweep.metric, shown, looks, best), [sweep.metric, trials, looks, best, shown.map(({ number }) => number).sort().join(" ")]);
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
        <p class="nothing">{shown.length < trials.length ? "None of the trials that are shown has reported two values." : "No trial has reported two values yet."}</p>
      )}
    </section>
  );
}
