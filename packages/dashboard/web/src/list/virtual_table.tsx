// The frame of a table of which only the rows on the screen are in the document.

import type { ComponentChildren, RefObject, VNode } from "preact";
import { useRef } from "preact/hooks";
import { Icon } from "../shell/icons";
import { move } from "./keys";
import { useMedia, useWindow } from "./virtual";

interface VirtualRows<T> {
  body: RefObject<HTMLDivElement | null>;
  height: number;
  /** How many rows there are. */
  count: number;
  /** The index of the first row that is shown. */
  first: number;
  shown: readonly T[];
}

/** The part of rows that is on the screen; a row is higher on a narrow one. */
export function useVirtualRows<T>(rows: readonly T[], wide: number, narrow: number): VirtualRows<T> {
  const body = useRef<HTMLDivElement>(null);
  const height = useMedia("(max-width: 720px)") ? narrow : wide;
  const { first, last } = useWindow(body, height, rows.length);
  return { body, height, count: rows.length, first, shown: rows.slice(first, last) };
}

/** What puts a row in its place: attributes of its element. */
export type RowPlace = ReturnType<typeof placeOf>;

function placeOf(index: number, height: number) {
  return {
    role: "row" as const,
    "aria-rowindex": index + 2,
    "data-index": index,
    style: { height: `${height}px`, transform: `translateY(${index * height}px)` },
  };
}

interface VirtualTableProperties<T> {
  class: string;
  label: string;
  /** The widths of its columns. Default: a style sheet has them. */
  tracks?: readonly string[];
  head: ComponentChildren;
  of: VirtualRows<T>;
  /** Whether further rows are not known yet. */
  isPartial?: boolean;
  /** The element of a row, with a key. */
  children(row: T, place: RowPlace): VNode;
}

export function VirtualTable<T>({ class: name, label, tracks, head, of, isPartial = false, children }: VirtualTableProperties<T>) {
  const { body, height, count, first, shown } = of;
  return (
    <div
      class={`table ${name}`}
      role="table"
      aria-label={label}
      aria-rowcount={isPartial ? -1 : count + 1}
      {...(tracks ? { style: { "--tracks": tracks.join(" ") } } : {})}
    >
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {head}
        </div>
      </div>
      <div role="rowgroup" class="body" ref={body} style={{ height: `${count * height}px` }} onKeyDown={(event) => move(event, height)}>
        {shown.map((row, at) => children(row, placeOf(first + at, height)))}
      </div>
    </div>
  );
}

/** A column without an order of its own. */
export type PlainColumn = [title: string, track: string];

/** The head of a table that nobody sorts. */
export function plainHead(columns: readonly PlainColumn[]) {
  return {
    tracks: columns.map(([, track]) => track),
    head: columns.map(([title]) => (
      <div role="columnheader" key={title}>
        {title}
      </div>
    )),
  };
}

interface GroupCellProperties {
  title: string;
  count: number;
  /** A line about what is in it. */
  summary: string;
  /** Columns of the table. */
  span: number;
  isOpen: boolean;
  onToggle(): void;
}

/** The only cell of a row that opens and closes a group of others. */
export function GroupCell({ title, count, summary, span, isOpen, onToggle }: GroupCellProperties) {
  return (
    <div role="cell" aria-colspan={span}>
      <button type="button" class={isOpen ? "fold open" : "fold"} aria-expanded={isOpen} onClick={onToggle}>
        <Icon of="down" />
        <strong>{title}</strong>
        <span class="tag">{count}</span>
        <span class="quiet">{summary}</span>
      </button>
    </div>
  );
}
