// The history: trainings that have ended or are gone, as a recorder has kept them.

import { useContext, useEffect } from "preact/hooks";
import { COMPARED } from "../compare/store";
import { zone } from "../format";
import { Choice, SearchField } from "../list/keys";
import { type RowPlace, VirtualTable, useVirtualRows } from "../list/virtual_table";
import type { Past } from "../model";
import { Problem, useTitle } from "../parts";
import { comparePath, go, href, onLink, pastPath } from "../route";
import { type Filters, STATES, read, toQuery, write } from "./filters";
import { Ending, LastValue, Time, endOf, took } from "./parts";
import { HasHistory, type Listing, useHistory } from "./store";

const COLUMNS: [name: string, title: string][] = [
  ["name", "TrainJob"],
  ["state", "State"],
  ["ended", "Ended"],
  ["took", "Took"],
  ["metric", "Last value"],
  ["runtime", "Runtime"],
  ["nodes", "Nodes"],
  ["owner", "Owner"],
];
const WIDE = 44;
const NARROW = 92;
/** Rows before the last one at which the next page is read. */
const AHEAD = 40;

export function HistoryPage({ query }: { query: URLSearchParams }) {
  useTitle("History");
  return (
    <main>
      <h1 tabIndex={-1}>History</h1>
      {useContext(HasHistory) ? (
        <History filters={read(query)} />
      ) : (
        <p class="nothing">
          This dashboard has no history. Whoever runs it can give it the database of <code>trainer history record</code>.
        </p>
      )}
    </main>
  );
}

function History({ filters }: { filters: Filters }) {
  const listing = useHistory(toQuery(filters));
  const { trainings, isLoaded, problem, next } = listing;
  return (
    <>
      {problem && <Problem>{problem}</Problem>}
      <FilterBar filters={filters} namespaces={listing.namespaces} />
      <div class="past-lead">
        <p class="count" role="status">
          {isLoaded ? count(trainings.length, Boolean(next)) : problem ? "" : "Loading ..."}
        </p>
        <p class="quiet">Times are those of {zone()}.</p>
        {trainings.length > 1 && trainings.length <= COMPARED && !next && (
          <a href={href(comparePath([], trainings))} onClick={onLink}>
            Compare the metrics of these {trainings.length}
          </a>
        )}
      </div>
      {isLoaded && trainings.length === 0 ? <Nothing filters={filters} note={listing.note} /> : <Table listing={listing} more={listing.more} />}
    </>
  );
}

function count(known: number, hasMore: boolean): string {
  return hasMore ? `${known} and more trainings` : `${known} ${known === 1 ? "training" : "trainings"}`;
}

function FilterBar({ filters, namespaces }: { filters: Filters; namespaces: readonly string[] }) {
  const set = (changes: Partial<Filters>) => go(write({ ...filters, ...changes }), "replace");
  const choices: [key: "namespace" | "state", title: string, values: readonly string[]][] = [
    ["namespace", "Namespace", namespaces],
    ["state", "State", STATES],
  ];
  return (
    <search class="filters">
      <SearchField text={filters.text} onText={(text) => set({ text })} />
      {choices.map(([key, title, values]) => (
        <Choice
          key={key}
          title={title}
          values={[...new Set(filters[key] ? [...values, filters[key]] : values)]}
          chosen={filters[key]}
          onChoice={(value) => set({ [key]: value })}
        />
      ))}
      <label class="check">
        <input type="checkbox" checked={filters.onlyDeleted} onChange={(event) => set({ onlyDeleted: event.currentTarget.checked })} />
        <span>Only deleted ones</span>
      </label>
    </search>
  );
}

function Nothing({ filters, note }: { filters: Filters; note: string }) {
  if (note || write(filters) === "/history")
    return <p class="nothing">{note || "Nothing has ended since the history is recorded."}</p>;
  return (
    <p class="nothing">
      No training matches.{" "}
      <a href={href("/history")} onClick={onLink}>
        Show all
      </a>
    </p>
  );
}

function Table({ listing: { trainings, next }, more }: { listing: Listing; more(): void }) {
  const rows = useVirtualRows(trainings, WIDE, NARROW);
  const last = rows.first + rows.shown.length;
  useEffect(() => {
    if (last > trainings.length - AHEAD) more();
  }, [last, trainings.length, next]);
  const head = COLUMNS.map(([key, title]) => (
    <div key={key} role="columnheader" class={key} aria-sort={key === "ended" ? "descending" : undefined}>
      {title}
    </div>
  ));
  return (
    <VirtualTable class="past" label="History" head={head} of={rows} isPartial={Boolean(next)}>
      {(past, place) => <Row key={past.uid} past={past} place={place} />}
    </VirtualTable>
  );
}

function Row({ past, place }: { past: Past; place: RowPlace }) {
  return (
    <div class="row" {...place}>
      <div role="cell" class="name">
        <a href={href(pastPath(past))} onClick={onLink}>
          {past.name}
        </a>{" "}
        <span class="namespace">{past.namespace}</span>
      </div>
      <div role="cell" class="state" title={past.message}>
        <Ending of={past} />
        {past.message && <span class="unseen">{past.message}</span>}
      </div>
      <div role="cell" class="ended">
        <Time of={endOf(past)} />
      </div>
      <div role="cell" class="took">{took(past)}</div>
      <div role="cell" class="metric">
        <LastValue of={past} />
      </div>
      <div role="cell" class="runtime" title={past.runtime}>
        {past.runtime}
      </div>
      <div role="cell" class="nodes">{past.nodes ?? ""}</div>
      <div role="cell" class="owner" title={past.owner}>
        {past.owner}
      </div>
    </div>
  );
}
