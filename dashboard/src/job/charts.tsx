// The metrics of a training as curves over its steps, or over time where it reports no steps.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { short } from "../format";
import type { Points } from "../model";
import { curveId } from "./store";

const HEIGHT = 180;

export function Charts({ curves }: { curves: ReadonlyMap<string, Points> }) {
  const isDark = useDark();
  if (curves.size === 0)
    return (
      <p class="nothing">
        No metrics yet. A training reports them with <code>trainer.progress.report</code>, and they are shown as long as
        its first pod exists.
      </p>
    );
  return (
    <div class="charts">
      {[...curves.values()].map((points) => (
        <Chart key={`${curveId(points)} ${isDark}`} points={points} />
      ))}
    </div>
  );
}

function useDark(): boolean {
  const [query] = useState(() => window.matchMedia("(prefers-color-scheme: dark)"));
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const listen = () => setDark(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, [query]);
  return isDark;
}

/** Pairs for the chart: steps where all samples have one and they do not go back, else seconds. */
export function columns({ steps, times, values }: Points): { data: [number[], number[]]; isTime: boolean } {
  const hasSteps = steps.every((step, index) => step >= 0 && (index === 0 || step >= steps[index - 1]!));
  return { data: [hasSteps ? steps : times, values], isTime: !hasSteps };
}

/** Whether only a part of the samples is in view. */
export function isZoomed({ min, max }: Pick<uPlot.Scale, "min" | "max">, x: ArrayLike<number>): boolean {
  if (min == null || max == null || x.length === 0) return false;
  return min > x[0]! || max < x[x.length - 1]!;
}

function Chart({ points }: { points: Points }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const { data, isTime } = columns(points);
  useEffect(() => {
    const element = place.current!;
    const color = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
    const axis: uPlot.Axis = {
      stroke: color("--quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
      font: "12px system-ui",
    };
    const created = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        scales: { x: { time: isTime } },
        axes: [{ ...axis, size: 32 }, { ...axis, size: 64, values: (_, splits) => splits.map(short) }],
        series: [{}, { stroke: color("--accent"), width: 1.5, points: { show: data[0].length < 2 } }],
      },
      data,
      element,
    );
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [isTime]);
  useEffect(() => update(plot.current!, data), [points]);
  const { least, greatest } = range(points.values);
  return (
    <figure class="chart">
      <figcaption>
        <strong>{points.name}</strong> {points.kind === "eval" && <span class="tag">evaluation</span>}
        <span class="last">{short(points.values.at(-1))}</span>
        <span class="range">
          least {short(least)}, greatest {short(greatest)}
        </span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

/** Show other samples; what the user has zoomed to stays in view, unless nothing is left there. */
function update(plot: uPlot, data: [number[], number[]]): void {
  const { x } = plot.scales;
  const [steps] = data;
  const isKept = isZoomed(x!, plot.data[0]) && steps.some((step) => step >= x!.min! && step <= x!.max!);
  plot.setData(data, !isKept);
  if (isKept) plot.redraw();
}

function range(values: number[]): { least: number | undefined; greatest: number | undefined } {
  let least = values[0];
  let greatest = values[0];
  for (const value of values) {
    if (value < least!) least = value;
    if (value > greatest!) greatest = value;
  }
  return { least, greatest };
}
