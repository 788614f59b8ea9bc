// Parallel coordinates: a line for each training over its parameters and results; a part of an axis filters.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Highlight } from "../charts/pointer";
import { NOT_SET, type ParallelAxis, keptText } from "./axes";
import { stepped } from "./brush";
import { standing } from "./highlight";
import type { Kept } from "./view";

const HEIGHT = 260;
const TOP = 46;
const BOTTOM = 30;
const LEFT = 56;
const RIGHT = 84;
/** The least distance of two axes; the picture scrolls where there are too many. */
const APART = 104;
/** How far below an axis a parameter stands that is not set. */
const BELOW = 18;
/** Movements that are shorter are clicks, which keep all of the axis again. */
const CLICK = 5;
const BRUSH = 28;
/** The width of a letter of a title, about. */
const LETTER = 8;

export interface ParallelLine {
  id: string;
  /** What tells it from the others. */
  label: string;
  /** The class that gives it its colour. */
  look: string;
}

interface ParallelProperties {
  lines: readonly ParallelLine[];
  axes: readonly ParallelAxis[];
  kept: readonly Kept[];
  isShown(index: number): boolean;
  highlight: Highlight;
  onKeep(key: string, kept: Kept | null): void;
  /** Default: a click on a line does nothing. */
  onOpen?(index: number): void;
}

export function Parallel({ lines, axes, kept, isShown, highlight, onKeep, onOpen }: ParallelProperties) {
  const place = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(800);
  useEffect(() => {
    const observer = new ResizeObserver(() => setRoom(place.current?.clientWidth ?? 800));
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const width = Math.max(room, LEFT + RIGHT + APART * (axes.length - 1));
  const apart = (width - LEFT - RIGHT) / Math.max(axes.length - 1, 1);
  const x = (axis: number) => LEFT + axis * apart;
  // The one that is pointed at is drawn above the others, and those that are filtered out below.
  const rank = (index: number) => (lines[index]!.label === highlight.label ? 2 : isShown(index) ? 1 : 0);
  const drawn = lines.map((_, index) => index).sort((a, b) => rank(a) - rank(b));
  return (
    <div class="scroll parallel" ref={place} tabIndex={0} role="region" aria-label="Parallel coordinates">
      <svg width={width} height={HEIGHT + TOP + BOTTOM} role="group" aria-label={`Lines of ${lines.length} trainings over ${axes.map(({ title }) => title).join(", ")}; the table has the same values`}>
        {drawn.map((index) => {
          const { id, label, look } = lines[index]!;
          const line = pathOf(axes, index, x);
          return (
            <g key={id} class={`line ${look} ${isShown(index) ? standing(highlight, label) : "out"}`}>
              <path d={line} />
              {isShown(index) && <path class={onOpen ? "touch opens" : "touch"} d={line} onMouseEnter={() => highlight.set(label)} onMouseLeave={() => highlight.set("")} onClick={() => onOpen?.(index)} />}
            </g>
          );
        })}
        {axes.map((axis, number) => (
          <Axis key={axis.key} of={axis} x={x(number)} letters={Math.min(Math.floor(apart / LETTER), 2 * Math.floor(LEFT / LETTER))} kept={kept.find(({ key }) => key === axis.key) ?? null} onKeep={(next) => onKeep(axis.key, next)} />
        ))}
      </svg>
    </div>
  );
}

function y(at: number): number {
  return TOP + (1 - at) * HEIGHT;
}

/** A curve through the values of a training; it has a gap where there is none. */
function pathOf(axes: readonly ParallelAxis[], index: number, x: (axis: number) => number): string {
  let path = "";
  let before: [number, number] | null = null;
  axes.forEach(({ places, isResult }, number) => {
    const at = places[index] ?? null;
    if (at === null && isResult) {
      before = null;
      return;
    }
    const point: [number, number] = [x(number), at === null ? y(0) + BELOW : y(at)];
    const middle = before ? (before[0] + point[0]) / 2 : 0;
    path += before ? `C${middle} ${before[1]} ${middle} ${point[1]} ${point[0]} ${point[1]}` : `M${point[0]} ${point[1]}`;
    before = point;
  });
  return path;
}

interface AxisProperties {
  of: ParallelAxis;
  x: number;
  /** Those of a title that have room. */
  letters: number;
  kept: Kept | null;
  onKeep(kept: Kept | null): void;
}

function Axis({ of, x, letters, kept, onKeep }: AxisProperties) {
  const [drag, setDrag] = useState<[from: number, to: number] | null>(null);
  const at = (event: PointerEvent) => {
    const top = (event.currentTarget as Element).getBoundingClientRect().top;
    return Math.min(Math.max(1 - (event.clientY - top - BRUSH / 2) / HEIGHT, 0), 1);
  };
  const keep = (part: readonly [from: number, to: number] | null) => {
    const next = part && of.kept(...part);
    onKeep(next && "values" in next && next.values.length === 0 ? null : next);
  };
  const end = () => {
    if (drag === null) return;
    const [from, to] = [Math.min(...drag), Math.max(...drag)];
    setDrag(null);
    keep((to - from) * HEIGHT < CLICK ? null : [from, to]);
  };
  const span = drag ?? (kept && of.span(kept));
  const hasMissing = !of.isResult && of.places.includes(null);
  return (
    <g class={of.isResult ? "axis result" : "axis"} transform={`translate(${x} 0)`}>
      <line y1={y(1)} y2={y(0)} />
      <text class="title" y={16} text-anchor="middle">
        {cut(of.title, letters)}
        {of.title.length > letters && <title>{of.title}</title>}
      </text>
      {of.kind && (
        <text class="kind" y={32} text-anchor="middle">
          {of.kind}
        </text>
      )}
      {of.ticks.map(([text, place]) => (
        <g key={text} transform={`translate(0 ${y(place)})`}>
          <line x2={5} />
          <text x={9} dy="0.32em">
            {cut(text, 12)}
          </text>
        </g>
      ))}
      {hasMissing && (
        <text class="kind" x={9} y={y(0) + BELOW} dy="0.32em">
          {NOT_SET}
        </text>
      )}
      {span && <rect class="kept" x={-9} width={18} y={y(Math.max(...span))} height={Math.max(Math.abs(span[1] - span[0]) * HEIGHT, 3)} />}
      <rect
        class="brush"
        x={-BRUSH / 2}
        y={y(1) - BRUSH / 2}
        width={BRUSH}
        height={HEIGHT + BRUSH}
        role="slider"
        tabindex={0}
        aria-orientation="vertical"
        aria-label={`Keep a part of ${of.title}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(100 * (span ? Math.min(Math.max(Math.min(...span), 0), 1) : 0))}
        aria-valuetext={kept ? keptText(kept) : "all"}
        aria-keyshortcuts="ArrowUp ArrowDown Shift+ArrowUp Shift+ArrowDown Escape"
        onKeyDown={(event) => {
          const next = stepped(kept && of.span(kept), of.step, event);
          if (next === undefined) return;
          event.preventDefault();
          keep(next);
        }}
        onPointerDown={(event) => {
          (event.currentTarget as Element).setPointerCapture(event.pointerId);
          setDrag([at(event), at(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], at(event)])}
        onPointerUp={end}
        onPointerCancel={() => setDrag(null)}
      />
    </g>
  );
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
