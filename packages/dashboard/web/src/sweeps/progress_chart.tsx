// The value of each trial as a dot, and the best so far as a line over them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Highlight } from "../charts/pointer";
import { numericAxis, ticksOf } from "../compare/axes";
import { duration } from "../format";
import type { Sweep, Trial } from "../model";
import { go } from "../route";
import { type Mark, type Progression, canBeOverTime, labelOf, progression } from "./ranking";
import { useTrialPath } from "./trial_link";

const HEIGHT = 260;
const TOP = 14;
const BOTTOM = 30;
const LEFT = 64;
const RIGHT = 18;
/** Where trials without a value stand, below all others. */
const BELOW = 16;
const INNER = HEIGHT - TOP - BOTTOM - BELOW;
/** Distances of times that people like, in seconds. */
const TIMES = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800];

interface ProgressChartProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  highlight: Highlight;
}

export function ProgressChart({ sweep, trials, looks, highlight }: ProgressChartProperties) {
  const [wanted, setWanted] = useState<"time" | "number">("time");
  const isDated = canBeOverTime(trials, sweep);
  const shown = useMemo(() => progression(trials, sweep, wanted), [trials, sweep.direction, sweep.started, wanted]);
  const pointed = shown.marks.find(({ trial }) => labelOf(trial) === highlight.label);
  return (
    <section class="progress-chart" aria-labelledby="progress-title">
      <div class="heading-line">
        <h2 id="progress-title">Best so far</h2>
        <label>
          <span>Over</span>{" "}
          <select value={shown.over} disabled={!isDated} onChange={(event) => setWanted(event.currentTarget.value === "number" ? "number" : "time")}>
            <option value="time" disabled={!isDated}>
              time
            </option>
            <option value="number">trials</option>
          </select>
        </label>
      </div>
      {shown.marks.some(({ y }) => y !== null) ? (
        <Plot of={shown} sweep={sweep} looks={looks} highlight={highlight} />
      ) : (
        <p class="nothing plot-room">No trial has ended with a value yet.</p>
      )}
      <p class="readout" aria-hidden="true">
        {pointed ? described(pointed, sweep) : ""}
      </p>
    </section>
  );
}

function described({ trial }: Mark, { metric }: Sweep): string {
  return [labelOf(trial), trial.state.toLowerCase(), trial.valueText && `${metric} ${trial.valueText}`].filter(Boolean).join(", ");
}

function Plot({ of: { marks, best, over }, sweep, looks, highlight }: { of: Progression; sweep: Sweep; looks: ReadonlyMap<number, string>; highlight: Highlight }) {
  const place = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(600);
  const path = useTrialPath();
  useEffect(() => {
    const observer = new ResizeObserver(() => setRoom(place.current?.clientWidth || 600));
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  // Values of trials that were stopped are often far worse than all others: they stand at the edge.
  const told = marks.filter(({ trial, y }) => trial.state === "Succeeded" && y !== null);
  const values = (told.length > 0 ? told : marks).map(({ y }) => y);
  const axis = numericAxis("value", sweep.metric, values, { isResult: true, kind: "" });
  const [low, high] = [Math.min(...values.filter((each) => each !== null)), Math.max(...values.filter((each) => each !== null))];
  const width = Math.max(high - low, 1e-300);
  const isLog = axis.kind === "log";
  const at = (value: number) => (high === low ? 0.5 : isLog ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / width);
  const y = (value: number) => TOP + (1 - Math.min(Math.max(at(value), 0), 1)) * INNER;
  const last = Math.max(...marks.map((mark) => mark.x), over === "number" ? Math.min(sweep.numTrials, marks.length + 1) : 1);
  const first = over === "number" ? 1 : 0;
  const x = (value: number) => LEFT + ((value - first) / Math.max(last - first, 1e-9)) * (room - LEFT - RIGHT);
  return (
    <div ref={place} class="plot-room">
      <svg width={room} height={HEIGHT} role="img" aria-label={`${sweep.metric} of ${marks.length} trials over ${over === "time" ? "time" : "their numbers"}; the table has the same values`}>
        {axis.ticks.map(([text, tick]) => (
          <g key={text} class="tick" transform={`translate(0 ${TOP + (1 - tick) * INNER})`}>
            <line x1={LEFT} x2={room - RIGHT} />
            <text x={LEFT - 8} dy="0.32em" text-anchor="end">
              {text}
            </text>
          </g>
        ))}
        {xTicks(first, last, over, room).map((tick) => (
          <text key={tick} class="label" x={x(tick)} y={HEIGHT - 8} text-anchor="middle">
            {over === "time" ? duration(tick) : tick}
          </text>
        ))}
        <path class="best-line" d={steps(best, last, x, y)} />
        {marks.map(({ trial, x: when, y: value }) => {
          const label = labelOf(trial);
          const to = path(sweep, trial);
          const raised = highlight.label === label ? " raised" : "";
          return (
            <g
              key={trial.number}
              class={`mark-of-trial ${looks.get(trial.number) ?? ""}${raised}${to ? " opens" : ""}`}
              transform={`translate(${x(when)} ${value === null ? HEIGHT - BOTTOM - 4 : y(value)})`}
              onMouseEnter={() => highlight.set(label)}
              onMouseLeave={() => highlight.set("")}
              onClick={() => to && go(to)}
            >
              {value === null ? <path d="M-4 -4L4 4M4 -4L-4 4" /> : <circle r={raised ? 6.5 : 4.5} />}
              <circle class="around" r={11} />
            </g>
          );
        })}
      </svg>
    </div>
  );
}

/** The best so far: it stays until a better one comes. */
function steps(best: Progression["best"], last: number, x: (value: number) => number, y: (value: number) => number): string {
  const [first, ...rest] = best;
  if (!first) return "";
  const path = rest.map(([when, value]) => `H${x(when)}V${y(value)}`).join("");
  return `M${x(first[0])} ${y(first[1])}${path}H${x(last)}`;
}

function xTicks(first: number, last: number, over: "time" | "number", room: number): number[] {
  const most = Math.max(Math.floor((room - LEFT - RIGHT) / 90), 2);
  if (last <= first) return [first];
  if (over === "number") {
    const whole = ticksOf(first, last, false).filter(Number.isInteger);
    const every = Math.ceil(whole.length / most);
    return [...new Set([first, ...whole.filter((each, index) => index % every === 0 && each - first > (last - first) / (2 * most))])];
  }
  const step = TIMES.find((each) => (last - first) / each <= most) ?? Math.ceil((last - first) / most / 604_800) * 604_800;
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);
}
