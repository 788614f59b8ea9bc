// The list of TrainJobs.

import { useMemo } from "preact/hooks";
import { COMPARED } from "../compare/store";
import type { Row } from "../model";
import { Problem, useTitle } from "../parts";
import { comparePath, go, href, onLink } from "../route";
import { useRuntimes } from "../runtimes/store";
import { complete } from "../runtimes/usage";
import { type Filters, read, select, values, write } from "./filters";
import { Choice, SearchField } from "./keys";
import { useListing } from "./store";
import { type Setting, Table } from "./table";

export function List({ query }: { query: URLSearchParams }) {
  const { rows, isLoaded, problem } = useListing();
  const { runtimes } = useRuntimes();
  const filters = read(query);
  const all = useMemo(() => complete(rows.values(), runtimes), [rows, runtimes]);
  const chosen = useMemo(() => select(all, filters), [all, query.toString()]);
  useTitle("TrainJobs");
  const set = (changes: Partial<Filters>) => go(write({ ...filters, ...changes }), "replace");
  return (
    <main>
      <h1 class="unseen" tabIndex={-1}>TrainJobs</h1>
      {problem && <Problem>{problem}</Problem>}
      <FilterBar rows={rows} filters={filters} set={set} />
      <p class="count" role="status">
        {isLoaded ? `${chosen.length} of ${rows.size} TrainJobs` : problem ? "" : "Loading ..."}
      </p>
      {chosen.length > 1 && chosen.length <= COMPARED && (
        <p>
          <a href={href(comparePath(chosen))} onClick={onLink}>
            Compare the metrics of these {chosen.length}
          </a>
        </p>
      )}
      {isLoaded && chosen.length === 0 ? (
        <Nothing isFiltered={rows.size > 0} />
      ) : (
        <Table rows={chosen} filters={filters} set={set} />
      )}
    </main>
  );
}

function FilterBar({ rows, filters, set }: Setting & { rows: ReadonlyMap<string, Row> }) {
  return (
    <search class="filters">
      <SearchField text={filters.text} onText={(text) => set({ text })} />
      {(["namespace", "state", "runtime"] as const).map((key) => (
        <Choice
          key={key}
          title={key[0]!.toUpperCase() + key.slice(1)}
          values={values(rows.values(), key, filters[key])}
          chosen={filters[key]}
          onChoice={(value) => set({ [key]: value })}
        />
      ))}
    </search>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <p class="nothing">
        No TrainJob matches. <a href={href("/")} onClick={onLink}>Show all</a>
      </p>
    );
  return (
    <p class="nothing">
      There are no TrainJobs yet. Start one with <code>trainer run train.py</code>
    </p>
  );
}
