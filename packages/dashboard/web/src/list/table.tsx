// A table of TrainJobs, of which only the rows on the screen are in the document.

import { useRef } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import type { Listed } from "../model";
import { Progress, Remaining, State } from "../parts";
import { href, jobPath, onLink } from "../route";
import { type Filters, type SortKey, id } from "./filters";
import { move } from "./keys";
import { Sparkline } from "./sparkline";
import { useRowHeight, useWindow } from "./virtual";

const COLUMNS: [SortKey | "metric", string][] = [
  ["name", "TrainJob"],
  ["state", "State"],
  ["progress", "Progress"],
  ["remaining", "Time left"],
  ["metric", "Metric"],
  ["runtime", "Runtime"],
  ["nodes", "Nodes"],
  ["gpus", "GPUs"],
  ["owner", "Owner"],
  ["created", "Age"],
];

const WIDE = 44;
const NARROW = 92;

export interface Setting {
  filters: Filters;
  set(changes: Partial<Filters>): void;
}

export function Table({ rows, filters, set }: Setting & { rows: Listed[] }) {
  const body = useRef<HTMLDivElement>(null);
  const height = useRowHeight(WIDE, NARROW);
  const { first, last } = useWindow(body, height, rows.length);
  return (
    <div class="table" role="table" aria-label="TrainJobs" aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {COLUMNS.map(([key, title]) =>
            key === "metric" ? (
              <div key={key} role="columnheader" class={key}>
                {title}
              </div>
            ) : (
              <Title key={key} of={key} title={title} filters={filters} set={set} />
            ),
          )}
        </div>
      </div>
      <div
        role="rowgroup"
        class="body"
        ref={body}
        style={{ height: `${rows.length * height}px` }}
        onKeyDown={(event) => move(event, height)}
      >
        {rows.slice(first, last).map((row, index) => (
          <Line key={id(row)} row={row} index={first + index} height={height} />
        ))}
      </div>
    </div>
  );
}

function Title({ of, title, filters, set }: Setting & { of: SortKey; title: string }) {
  const isSorted = filters.sort === of;
  const order = isSorted ? (filters.isReversed ? "descending" : "ascending") : "none";
  return (
    <div role="columnheader" class={of} aria-sort={order}>
      <button type="button" onClick={() => set({ sort: of, isReversed: isSorted ? !filters.isReversed : of !== "name" })}>
        {title}
        <span aria-hidden="true">{isSorted ? (filters.isReversed ? " ↓" : " ↑") : ""}</span>
      </button>
    </div>
  );
}

function Line({ row, index, height }: { row: Listed; index: number; height: number }) {
  const now = useNow();
  return (
    <div
      role="row"
      class="row"
      aria-rowindex={index + 2}
      data-index={index}
      style={{ height: `${height}px`, transform: `translateY(${index * height}px)` }}
    >
      <div role="cell" class="name">
        <a href={href(jobPath(row.namespace, row.name))} onClick={onLink}>
          {row.name}
        </a>{" "}
        <span class="namespace">{row.namespace}</span>
      </div>
      <div role="cell" class="state">
        <span title={row.message}>
          <State of={row} />
        </span>
        {row.message && <span class="unseen">{row.message}</span>}
      </div>
      <div role="cell" class="progress">
        <Progress of={row} />
      </div>
      <div role="cell" class="remaining">
        <Remaining of={row} />
      </div>
      <div role="cell" class="metric">{row.metric && <Sparkline of={row.metric} />}</div>
      <div role="cell" class="runtime" title={row.runtime}>
        {row.runtime}
      </div>
      <div role="cell" class="nodes">{row.nodes ?? ""}</div>
      <div role="cell" class="gpus">{row.gpus ?? ""}</div>
      <div role="cell" class="owner" title={row.owner}>
        {row.owner}
      </div>
      <div role="cell" class="created" title={row.created ?? ""}>
        {age(row.created, now)}
      </div>
    </div>
  );
}
