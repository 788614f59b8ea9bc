// A table of TrainJobs, of which only the rows on the screen are in the document.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import type { Listed } from "../model";
import { Progress, Remaining, State } from "../parts";
import { href, jobPath, onLink } from "../route";
import { toggled } from "../toggled";
import { type Column, type ColumnKey, type Room, columns, reasonOf } from "./columns";
import { type Filters, type SortKey, id } from "./filters";
import { items, summary } from "./groups";
import { Sparkline } from "./sparkline";
import { useMedia } from "./virtual";
import { GroupCell, type RowPlace, VirtualTable, useVirtualRows } from "./virtual_table";

const WIDE = 54;
const NARROW = 92;
/** Letters of the end of a long name that are never left out: names that programs make differ there. */
const TAIL = 7;
const LONG = 20;
const CHECK = "30px";

export interface Setting {
  filters: Filters;
  set(changes: Partial<Filters>): void;
}

/** The UIDs of rows that are selected: a TrainJob that is made again is another one. */
export interface Selection {
  selected: ReadonlySet<string>;
  onSelect(selected: ReadonlySet<string>): void;
}

interface TableProperties extends Setting {
  rows: Listed[];
  /** Default: nothing can be selected. */
  selection?: Selection;
}

export function Table({ rows, filters, set, selection }: TableProperties) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const lines = useMemo(() => items(rows, filters.groupBy, closed), [rows, filters.groupBy, closed]);
  const room = useRoom();
  const shown = useMemo(() => columns(rows, filters.sort, room), [rows, filters.sort, room]);
  const tracks = [...(selection ? [CHECK] : []), ...shown.map(({ width }) => width)];
  const head = (
    <>
      {selection && <SelectAll rows={rows} {...selection} />}
      {shown.map((column) => (
        <Title key={column.key} of={column} filters={filters} set={set} />
      ))}
    </>
  );
  return (
    <VirtualTable class={selection ? "jobs selectable" : "jobs"} label="TrainJobs" tracks={tracks} head={head} of={useVirtualRows(lines, WIDE, NARROW)}>
      {({ row, group }, place) =>
        row ? (
          <Line key={id(row)} row={row} shown={shown} place={place} {...(selection ? { selection } : {})} />
        ) : (
          <div key={`group ${group.value}`} {...place} class="row grouping">
            <GroupCell
              title={group.value || "None"}
              count={group.rows.length}
              summary={summary(group)}
              span={tracks.length}
              isOpen={!closed.has(group.value)}
              onToggle={() => setClosed((before) => toggled(before, group.value))}
            />
          </div>
        )
      }
    </VirtualTable>
  );
}

/** A narrow screen has a row of several lines, where all columns have their place. */
function useRoom(): Room {
  const [isNarrow, isSmall, isMedium] = [useMedia("(max-width: 720px)"), useMedia("(max-width: 940px)"), useMedia("(max-width: 1180px)")];
  return isNarrow || !isMedium ? "wide" : isSmall ? "small" : "medium";
}

function SelectAll({ rows, selected, onSelect }: Selection & { rows: Listed[] }) {
  const isAll = rows.length > 0 && rows.every((row) => selected.has(row.uid));
  return (
    <div role="columnheader" class="check">
      <input
        type="checkbox"
        aria-label={`Select all ${rows.length} TrainJobs`}
        checked={isAll}
        ref={(input) => {
          if (input) input.indeterminate = !isAll && selected.size > 0;
        }}
        onChange={() => onSelect(isAll ? new Set() : new Set(rows.map(({ uid }) => uid)))}
      />
      <span aria-hidden="true">Select all</span>
    </div>
  );
}

function Title({ of: { key, title }, filters, set }: Setting & { of: Column }) {
  if (key === "metric")
    return (
      <div role="columnheader" class={key}>
        {title}
      </div>
    );
  return <SortTitle of={key} title={title} filters={filters} set={set} />;
}

function SortTitle({ of, title, filters, set }: Setting & { of: SortKey; title: string }) {
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

interface LineProperties {
  row: Listed;
  shown: readonly Column[];
  place: RowPlace;
  selection?: Selection;
}

function Line({ row, shown, place, selection }: LineProperties) {
  const now = useNow();
  const isSelected = selection?.selected.has(row.uid) ?? false;
  const reason = reasonOf(row);
  return (
    <div {...place} class={`row${isSelected ? " selected" : ""}${reason ? " explained" : ""}`}>
      {selection && (
        <div role="cell" class="check">
          <input
            type="checkbox"
            aria-label={`Select ${row.name}`}
            checked={isSelected}
            onChange={() => selection.onSelect(toggled(selection.selected, row.uid))}
          />
        </div>
      )}
      {shown.map(({ key }) => (
        <Cell key={key} of={key} row={row} reason={reason} now={now} />
      ))}
    </div>
  );
}

/** A name whose end is seen however little room there is. */
function Name({ children: name }: { children: string }) {
  if (name.length <= LONG) return <>{name}</>;
  return (
    <>
      <span class="stem">{name.slice(0, -TAIL)}</span>
      <span>{name.slice(-TAIL)}</span>
    </>
  );
}

function Cell({ of, row, reason, now }: { of: ColumnKey; row: Listed; reason: string; now: number }) {
  switch (of) {
    case "name":
      return (
        <div role="cell" class="name">
          <a href={href(jobPath(row.namespace, row.name))} onClick={onLink} title={row.name} aria-label={row.name}>
            <Name>{row.name}</Name>
          </a>{" "}
          <span class="namespace">{row.namespace}</span>
        </div>
      );
    case "state":
      return (
        <div role="cell" class="state">
          <State of={row} />{" "}
          {reason ? (
            <span class="reason" title={reason}>
              {reason}
            </span>
          ) : (
            row.message && <span class="unseen">{row.message}</span>
          )}
        </div>
      );
    case "progress":
      return <div role="cell" class="progress"><Progress of={row} /></div>;
    case "remaining":
      return <div role="cell" class="remaining"><Remaining of={row} /></div>;
    case "metric":
      return <div role="cell" class="metric">{row.metric && <Sparkline of={row.metric} />}</div>;
    case "created":
      return <div role="cell" class="created" title={row.created ?? ""}>{age(row.created, now)}</div>;
    default:
      return <div role="cell" class={of} title={String(row[of] ?? "")}>{row[of] ?? ""}</div>;
  }
}
