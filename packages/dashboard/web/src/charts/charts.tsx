// Metrics as curves over steps, epochs or time.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { duration, short } from "../format";
import { type Axis, type Count, type Line, TONES, axisOf, byMetric, canBeLogarithmic, choiceOf, extent, tables } from "./curves";
import { arranged, csvOf, fileName, separated } from "./arrangement";
import { PictureButton, save } from "./buttons";
import { familyOf } from "./family";
import { type ChartOptions, SMOOTHINGS } from "./options";
import { ALL_SAID, type Highlight, nearest, opacity, pointed, position, raise, rawOpacity } from "./pointer";
import { SingleValues } from "./single_values";
import { type Range, type Zoom, hasSample, isZoomed, wholeOf, zoomOf, zoomed } from "./zoom";
import { ZoomBar, ZoomHelp } from "./zoom_bar";
import { useDark } from "../theme";

const HEIGHT = 180;
/** With the lines of several trainings. */
const COMPARED_HEIGHT = 240;
/** Distances of marks below a chart: there is no half epoch. */
const WHOLE = Array.from({ length: 27 }, (_, index) => [1, 2, 5][index % 3]! * 10 ** Math.floor(index / 3));
const SHORTCUTS = "+ - ArrowLeft ArrowRight 0 Escape";

export interface ChartSetting {
  options: ChartOptions;
  setOptions(options: ChartOptions): void;
}

interface ChartsProperties extends ChartSetting {
  lines: readonly Line[];
  /** Whether lines are of several TrainJobs, which one legend outside of the charts names. */
  isCompared?: boolean;
  /** The training that is pointed at, here or elsewhere. Default: none is. */
  highlight?: Highlight;
}

export function Charts({ lines, options, setOptions, isCompared = false, highlight }: ChartsProperties) {
  const isDark = useDark();
  const charts = byMetric(lines);
  const { drawn, single } = separated(charts);
  const shown = arranged(drawn, options);
  const pin = (name: string) => {
    const others = options.pins.filter((each) => each !== name);
    setOptions({ ...options, pins: others.length < options.pins.length ? others : [...others, name] });
  };
  return (
    <>
      <OptionBar options={options} setOptions={setOptions} hasMany={drawn.length > 1} count={choiceOf(lines)} />
      <div class="charts">
        {shown.map(([name, of]) => (
          <Chart
            key={`${name} ${isDark}`}
            name={name}
            lines={of}
            options={options}
            isCompared={isCompared}
            highlight={highlight}
            isPinned={options.pins.includes(name)}
            onPin={() => pin(name)}
          />
        ))}
      </div>
      {shown.length === 0 && drawn.length > 0 && <p class="nothing">No metric has this in its name.</p>}
      {!isCompared && <SingleValues of={single} />}
      {shown.length > 0 && <ZoomHelp />}
    </>
  );
}

export function OptionBar({ options, setOptions, hasMany, count }: ChartSetting & { hasMany: boolean; count: Count | null }) {
  return (
    <div class="filters options">
      {hasMany && (
        <label>
          <span>Search metrics</span>
          <input type="search" value={options.search} onInput={(event) => setOptions({ ...options, search: event.currentTarget.value })} />
        </label>
      )}
      {hasMany && (
        <label>
          <span>Order</span>
          <select value={options.order} onChange={(event) => setOptions({ ...options, order: event.currentTarget.value === "name" ? "name" : "reported" })}>
            <option value="reported">as reported</option>
            <option value="name">by name</option>
          </select>
        </label>
      )}
      {count && (
        <label>
          <span>Over</span>
          <select
            value={options.axis}
            onChange={(event) => setOptions({ ...options, axis: event.currentTarget.value === "time" ? "time" : "step" })}
          >
            <option value="step">{count}s</option>
            <option value="time">time</option>
          </select>
        </label>
      )}
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
    lines.every(({ id, tone, color, isFaint, points }, index) => {
      const other = before.current[index]!;
      return id === other.id && tone === other.tone && color === other.color && isFaint === other.isFaint && points === other.points;
    });
  if (!isSame) before.current = lines;
  return before.current;
}

interface ChartProperties {
  name: string;
  lines: readonly Line[];
  options: ChartOptions;
  isCompared: boolean;
  highlight: Highlight | undefined;
  isPinned?: boolean;
  /** Default: it cannot be pinned. */
  onPin?(): void;
}

export function Chart({ name, lines: given, options, isCompared, highlight, isPinned = false, onPin }: ChartProperties) {
  const figure = useRef<HTMLElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const view = useRef<HTMLParagraphElement>(null);
  const plot = useRef<uPlot>(null);
  const lines = useStable(given);
  const shared = useRef(highlight);
  shared.current = highlight;
  const { smoothing } = options;
  const axis = useMemo(() => axisOf(lines, options, isCompared), [lines, options.axis, isCompared]);
  const isLog = useMemo(() => options.isLog && canBeLogarithmic(lines), [lines, options.isLog]);
  const data = useMemo(() => {
    const each = tables(lines, axis, { isLog, smoothing }) as uPlot.AlignedData[];
    return each.length === 1 ? each[0]! : uPlot.join(each);
  }, [lines, axis, isLog, smoothing]);
  const shape = `${axis} ${isLog} ${smoothing > 0} ${lines.map(({ id, tone, color, isFaint }) => `${id} ${tone} ${color} ${isFaint}`).join("\n")}`;
  useEffect(() => {
    const element = place.current!;
    const looks = appearance(element, lines, { axis, isLog, isSmooth: smoothing > 0 });
    const hooks: uPlot.Hooks.Arrays = {
      setCursor: [
        (drawn) => {
          show(readout.current, pointed(drawn, lines, axis, smoothing > 0, shared.current?.label));
          if (drawn.over.matches(":hover")) shared.current?.set(nearest(drawn, lines, smoothing > 0));
        },
      ],
      setScale: [(drawn, key) => key === "x" && show(view.current, inView(drawn, axis))],
    };
    const usual = isCompared ? COMPARED_HEIGHT : HEIGHT;
    const sizeOf = () => ({ width: element.clientWidth, height: isFull(figure.current) ? Math.max(innerHeight - AROUND, usual) : usual });
    const created = new uPlot({ ...looks, ...sizeOf(), hooks }, data, element);
    plot.current = created;
    drawnRaised.current = "";
    const observer = new ResizeObserver(() => created.setSize(sizeOf()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [shape]);
  useEffect(() => {
    if (plot.current && plot.current.data !== data) update(plot.current, data);
  }, [data]);
  const raised = highlight?.label ?? "";
  const drawnRaised = useRef("");
  useEffect(() => {
    if (!plot.current || !highlight) return;
    // A chart that nobody sees is not drawn again for each training that the pointer passes.
    const label = isInView(figure.current!) ? raised : "";
    if (label === drawnRaised.current) return;
    drawnRaised.current = label;
    raise(plot.current, lines, label, smoothing > 0);
    show(readout.current, pointed(plot.current, lines, axis, smoothing > 0, label));
  }, [raised, shape]);
  const onZoom = (zoom: Zoom) => plot.current && zoomTogether(plot.current, zoom);
  const onKey = (event: KeyboardEvent) => {
    const zoom = zoomOf(event);
    if (!zoom) return;
    event.preventDefault();
    onZoom(zoom);
  };
  return (
    <figure class={`chart${isPinned ? " pinned" : ""}`} ref={figure}>
      <Caption name={name} lines={isCompared ? [] : lines}>
        <div class="chart-tools" role="group" aria-label={`Chart tools of ${name}`}>
          {onPin && <PictureButton picture="pin" label={`Pin ${name}`} isPressed={isPinned} onClick={onPin} />}
          <PictureButton picture="csv" label={`Download ${name} as CSV`} onClick={() => save(fileName(name, "csv"), new Blob([csvOf(lines)], { type: "text/csv" }))} />
          <PictureButton picture="picture" label={`Download ${name} as PNG`} onClick={() => plot.current && savePicture(plot.current, name)} />
          <PictureButton picture="full" label={`Full screen of ${name}`} onClick={() => void toggleFull(figure.current!)} />
        </div>
      </Caption>
      {options.isLog && !isLog && <p class="quiet">Nothing in it is above zero, so that its scale is linear.</p>}
      <div class="plot" tabIndex={0} role="group" onMouseLeave={() => highlight?.set("")} aria-label={`Chart of ${name}`} aria-keyshortcuts={SHORTCUTS} onKeyDown={onKey}>
        <div ref={place} aria-hidden="true" />
      </div>
      <div class="under">
        <div>
          <p ref={readout} class="readout" aria-hidden="true" />
          <p ref={view} class="readout" aria-live="polite" />
        </div>
        <ZoomBar name={name} onZoom={onZoom} />
      </div>
    </figure>
  );
}

/** What stands around a chart that fills the screen, in pixels. */
const AROUND = 220;

function isFull(element: Element | null): boolean {
  return element !== null && document.fullscreenElement === element;
}

function isInView(element: Element): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

async function toggleFull(element: Element): Promise<void> {
  if (isFull(element)) await document.exitFullscreen();
  else await element.requestFullscreen();
}

/** Save a chart as it is drawn, with its name above. */
function savePicture({ ctx: { canvas }, root }: uPlot, name: string): void {
  const above = 28 * devicePixelRatio;
  const picture = new OffscreenCanvas(canvas.width, canvas.height + above);
  const context = picture.getContext("2d")!;
  const style = getComputedStyle(root);
  context.fillStyle = style.getPropertyValue("--page").trim();
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = style.getPropertyValue("--text").trim();
  context.font = `600 ${14 * devicePixelRatio}px system-ui`;
  context.fillText(name, 10 * devicePixelRatio, 19 * devicePixelRatio);
  context.drawImage(canvas, 0, above);
  void picture.convertToBlob().then((blob) => save(fileName(name, "png"), blob));
}

/** A name that says more than that of the chart; empty where it does not. */
function ownName(lines: readonly Line[], { label, points }: Line): string {
  const { name, side } = familyOf(points);
  const isAlone = lines.filter((each) => each.label === label && familyOf(each.points).side === side).length === 1;
  return isAlone || points.name === name ? "" : points.name;
}

function Caption({ name, lines, children }: { name: string; lines: readonly Line[]; children: ComponentChildren }) {
  return (
    <figcaption>
      <strong>{name}</strong>
      {children}
      <ul class="legend" hidden={lines.length === 0}>
        {lines.map((line) => {
          const { id, label, tone, points } = line;
          const { least, greatest } = extent(points.values);
          const { side } = familyOf(points);
          const own = ownName(lines, line);
          const last = points.values.at(-1);
          return (
            <li key={id} class={`tone-${tone % TONES}`}>
              <span class={`swatch ${side}`} aria-hidden="true" />
              {label && <span>{label}</span>}
              {own && <span>{own}</span>}
              {side === "eval" && <span class="tag">evaluation</span>}
              <span class="last">{Number.isFinite(last) ? short(last) : String(last)}</span>
              <span class="range">
                min {short(least)}, max {short(greatest)}
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
  const series = lines.flatMap((line): uPlot.Series[] => {
    const { tone, points } = line;
    const stroke = color(line.color ?? `--series-${tone % TONES}`);
    const dash = familyOf(points).side === "eval" && !line.color ? { dash: [7, 3] } : {};
    const drawn: uPlot.Series = { stroke, alpha: opacity(line), width: 1.5, points: { show: points.values.length < 2 }, spanGaps: lines.length > 1, ...dash };
    return isSmooth ? [{ ...drawn, alpha: rawOpacity(lines.length) * opacity(line), width: 1 }, drawn] : [drawn];
  });
  return {
    legend: { show: false },
    cursor: { y: false, sync: { key: syncKey(axis) }, points: { show: lines.length <= ALL_SAID } },
    scales: { x: { time: axis === "time" }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      {
        ...common,
        size: 32,
        ...(axis === "elapsed" ? { values: (_: uPlot, splits: number[]) => splits.map(duration) } : {}),
        ...(axis === "epoch" || axis === "step" ? { incrs: WHOLE } : {}),
      },
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

/** Show a text, and leave it as it is where nothing changes, so that it is read aloud once. */
function show(element: Element | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}

/** Show other samples; what the user has zoomed to stays in view, unless nothing is left there. */
function update(plot: uPlot, data: uPlot.AlignedData): void {
  const view = viewOf(plot);
  const isKept = view !== null && isZoomed(view, plot.data[0]) && hasSample(data[0], view);
  plot.setData(data, !isKept);
  if (isKept) plot.redraw();
}
