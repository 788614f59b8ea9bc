// Metrics as curves over steps or time.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { duration, short } from "../format";
import { type Axis, type Line, axisOf, byMetric, canBeLogarithmic, extent, tables } from "./curves";
import { type ChartOptions, SMOOTHINGS } from "./options";
import { type Range, type Zoom, hasSample, isZoomed, wholeOf, zoomOf, zoomed } from "./zoom";
import { ZoomBar, ZoomHelp } from "./zoom_bar";
import { useDark } from "../theme";

const HEIGHT = 180;
const TONES = 8;
const SHORTCUTS = "+ - ArrowLeft ArrowRight 0 Escape";

export interface ChartSetting {
  options: ChartOptions;
  setOptions(options: ChartOptions): void;
}

interface ChartsProperties extends ChartSetting {
  lines: readonly Line[];
  /** Whether lines are of several TrainJobs. */
  isCompared?: boolean;
}

export function Charts({ lines, options, setOptions, isCompared = false }: ChartsProperties) {
  const isDark = useDark();
  return (
    <>
      <OptionBar options={options} setOptions={setOptions} />
      {lines.length > 0 && <ZoomHelp />}
      <div class="charts">
        {byMetric(lines).map(([name, of]) => (
          <Chart key={`${name} ${isDark}`} name={name} lines={of} options={options} isCompared={isCompared} />
        ))}
      </div>
    </>
  );
}

function OptionBar({ options, setOptions }: ChartSetting) {
  return (
    <div class="filters options">
      <label>
        <span>Over</span>
        <select
          value={options.axis}
          onChange={(event) => setOptions({ ...options, axis: event.currentTarget.value === "time" ? "time" : "step" })}
        >
          <option value="step">steps</option>
          <option value="time">time</option>
        </select>
      </label>
      <label>
        <span>Smoothing</span>
        <select
          value={String(options.smoothing)}
          onChange={(event) => setOptions({ ...options, smoothing: Number(event.currentTarget.value) })}
        >
          {[...new Set([...SMOOTHINGS, options.smoothing])].map((weight) => (
            <option key={weight} value={String(weight)}>
              {weight || "none"}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={options.isLog}
          onChange={(event) => setOptions({ ...options, isLog: event.currentTarget.checked })}
        />
        <span>Logarithmic</span>
      </label>
    </div>
  );
}

/** The same lines as before while their samples are the same: only those charts are drawn again that have changed. */
function useStable(lines: readonly Line[]): readonly Line[] {
  const before = useRef(lines);
  const isSame =
    lines.length === before.current.length &&
    lines.every(({ id, tone, points }, index) => {
      const other = before.current[index]!;
      return id === other.id && tone === other.tone && points === other.points;
    });
  if (!isSame) before.current = lines;
  return before.current;
}

interface ChartProperties {
  name: string;
  lines: readonly Line[];
  options: ChartOptions;
  isCompared: boolean;
}

function Chart({ name, lines: given, options, isCompared }: ChartProperties) {
  const place = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const view = useRef<HTMLParagraphElement>(null);
  const plot = useRef<uPlot>(null);
  const lines = useStable(given);
  const { smoothing } = options;
  const axis = useMemo(() => axisOf(lines, options, isCompared), [lines, options.axis, isCompared]);
  const isLog = useMemo(() => options.isLog && canBeLogarithmic(lines), [lines, options.isLog]);
  const data = useMemo(() => {
    const each = tables(lines, axis, { isLog, smoothing }) as uPlot.AlignedData[];
    return each.length === 1 ? each[0]! : uPlot.join(each);
  }, [lines, axis, isLog, smoothing]);
  const shape = `${axis} ${isLog} ${smoothing > 0} ${lines.map(({ id, tone }) => `${id} ${tone}`).join("\n")}`;
  useEffect(() => {
    const element = place.current!;
    const looks = appearance(element, lines, { axis, isLog, isSmooth: smoothing > 0 });
    const hooks: uPlot.Hooks.Arrays = {
      setCursor: [(drawn) => show(readout.current, pointed(drawn, lines, axis, smoothing > 0))],
      setScale: [(drawn, key) => key === "x" && show(view.current, inView(drawn, axis))],
    };
    const created = new uPlot({ ...looks, width: element.clientWidth, height: HEIGHT, hooks }, data, element);
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [shape]);
  useEffect(() => {
    if (plot.current && plot.current.data !== data) update(plot.current, data);
  }, [data]);
  const onZoom = (zoom: Zoom) => plot.current && zoomTogether(plot.current, zoom);
  const onKey = (event: KeyboardEvent) => {
    const zoom = zoomOf(event);
    if (!zoom) return;
    event.preventDefault();
    onZoom(zoom);
  };
  return (
    <figure class="chart">
      <Caption name={name} lines={lines} />
      {options.isLog && !isLog && <p class="quiet">Nothing in it is above zero, so that its scale is linear.</p>}
      <div class="plot" tabIndex={0} role="group" aria-label={`Chart of ${name}`} aria-keyshortcuts={SHORTCUTS} onKeyDown={onKey}>
        <div ref={place} aria-hidden="true" />
      </div>
      <p ref={readout} class="readout" aria-hidden="true" />
      <div class="under">
        <ZoomBar name={name} onZoom={onZoom} />
        <p ref={view} class="readout" aria-live="polite" />
      </div>
    </figure>
  );
}

function Caption({ name, lines }: { name: string; lines: readonly Line[] }) {
  return (
    <figcaption>
      <strong>{name}</strong>
      <ul class="legend">
        {lines.map(({ id, label, tone, points }) => {
          const { least, greatest } = extent(points.values);
          return (
            <li key={id} class={`tone-${tone % TONES}`}>
              <span class={`swatch ${points.kind}`} aria-hidden="true" />
              {label && <span>{label}</span>}
              {points.kind === "eval" && <span class="tag">evaluation</span>}
              <span class="last">{short(points.values.at(-1))}</span>
              <span class="range">
                least {short(least)}, greatest {short(greatest)}
              </span>
            </li>
          );
        })}
      </ul>
    </figcaption>
  );
}

interface Looks {
  axis: Axis;
  isLog: boolean;
  isSmooth: boolean;
}

/** The options of a chart in the colours of the page. */
function appearance(element: Element, lines: readonly Line[], { axis, isLog, isSmooth }: Looks): Omit<uPlot.Options, "width" | "height"> {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const common: uPlot.Axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 },
    font: "12px system-ui",
  };
  const labels = (_: uPlot, splits: (number | null)[]) => splits.map((split) => short(split));
  const series = lines.flatMap(({ tone, points }): uPlot.Series[] => {
    const stroke = color(`--series-${tone % TONES}`);
    const dash = points.kind === "eval" ? { dash: [7, 3] } : {};
    const drawn: uPlot.Series = { stroke, width: 1.5, points: { show: points.values.length < 2 }, spanGaps: lines.length > 1, ...dash };
    return isSmooth ? [{ ...drawn, alpha: 0.3, width: 1 }, drawn] : [drawn];
  });
  return {
    legend: { show: false },
    cursor: { y: false, sync: { key: syncKey(axis) } },
    scales: { x: { time: axis === "time" }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      { ...common, size: 32, ...(axis === "elapsed" ? { values: (_: uPlot, splits: number[]) => splits.map(duration) } : {}) },
      { ...common, size: 64, values: labels },
    ],
    series: [{}, ...series],
  };
}

/** Charts over the same axis are pointed at and zoomed together. */
function syncKey(axis: Axis): string {
  return `metrics over ${axis}`;
}

function zoomTogether(plot: uPlot, zoom: Zoom): void {
  const view = viewOf(plot);
  const whole = wholeOf(plot.data[0]);
  if (!view || !whole) return;
  const next = zoomed(view, whole, zoom);
  for (const each of uPlot.sync(plot.cursor.sync!.key).plots) {
    const range = zoom === "all" ? wholeOf(each.data[0]) : next;
    if (range) each.setScale("x", range);
  }
}

function viewOf({ scales }: uPlot): Range | null {
  const { min, max } = scales.x!;
  return min == null || max == null ? null : { min, max };
}

/** What is in view of a chart, as text; empty for all of it. */
function inView(plot: uPlot, axis: Axis): string {
  const view = viewOf(plot);
  return view && isZoomed(view, plot.data[0]) ? `in view: ${position(view.min, axis)} to ${position(view.max, axis)}` : "";
}

function position(x: number, axis: Axis): string {
  if (axis === "step") return `step ${Math.round(x)}`;
  return axis === "elapsed" ? duration(x) : new Date(x * 1000).toLocaleTimeString();
}

/** Show a text, and leave it as it is where nothing changes, so that it is read aloud once. */
function show(element: Element | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}

/** The values under the pointer, as text. */
function pointed(plot: uPlot, lines: readonly Line[], axis: Axis, isSmooth: boolean): string {
  const index = plot.cursor.idx;
  const x = index == null ? undefined : plot.data[0][index];
  if (index == null || x === undefined) return "";
  const where = position(x, axis);
  const values = lines.flatMap(({ label, points }, number) => {
    const value = plot.data[isSmooth ? 2 * number + 1 : number + 1]?.[index];
    if (value == null) return [];
    return [[label, points.kind === "eval" ? "evaluation" : "", short(value)].filter(Boolean).join(" ")];
  });
  return values.length > 0 ? `${where}: ${values.join(", ")}` : where;
}

/** Show other samples; what the user has zoomed to stays in view, unless nothing is left there. */
function update(plot: uPlot, data: uPlot.AlignedData): void {
  const view = viewOf(plot);
  const isKept = view !== null && isZoomed(view, plot.data[0]) && hasSample(data[0], view);
  plot.setData(data, !isKept);
  if (isKept) plot.redraw();
}
