// The list of what waits, with why, its place in its queue, and since when.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age, moment } from "../format";
import { useListing } from "../list/store";
import { type PlainColumn, type RowPlace, VirtualTable, plainHead, useVirtualRows } from "../list/virtual_table";
import type { Listed, Workload } from "../model";
import { Tone } from "../parts";
import { href, jobPath, onLink } from "../route";
import { useRuntimes } from "../runtimes/store";
import { complete } from "../runtimes/usage";
import { useReasons } from "./reasons";
import { type Waiting, summary, waiting } from "./waiting";

/** So many are shown before somebody asks for all. */
const FEW = 8;
const WIDE = 56;
const NARROW = 100;

export function WaitingList({ namespace, workloads }: { namespace: string; workloads: readonly Workload[] }) {
  const { rows, isLoaded, more, problem } = useListing();
  const { runtimes } = useRuntimes();
  const [hasAll, setHasAll] = useState(false);
  const all = useMemo(() => {
    const own = <T extends { namespace: string }>(each: T) => !namespace || each.namespace === namespace;
    return waiting(complete(rows.values(), runtimes).filter(own), workloads.filter(own));
  }, [rows, runtimes, workloads, namespace]);
  const isComplete = isLoaded && more === 0;
  return (
    <section aria-label="Waiting TrainJobs">
      <h2>
        Waiting <span class="quiet" role="status">{isComplete ? all.length > 0 && summary(all) : problem ? "" : "Loading ..."}</span>
      </h2>
      {isComplete && all.length === 0 && <p class="nothing">Nothing waits{namespace && ` in ${namespace}`}.</p>}
      {isComplete && all.length > 0 && <Lines of={hasAll ? all : all.slice(0, FEW)} shows={shows(all)} />}
      {isComplete && all.length > FEW && (
        <button type="button" class="more" aria-expanded={hasAll} onClick={() => setHasAll(!hasAll)}>
          {hasAll ? `Show the first ${FEW}` : `Show all ${all.length}`}
        </button>
      )}
    </section>
  );
}

/** The columns that something fills. */
interface Shows {
  queue: boolean;
  gpus: boolean;
}

function shows(all: readonly Waiting[]): Shows {
  return { queue: all.some(({ queue }) => queue), gpus: all.some(({ gpus }) => gpus) };
}

function columns({ queue, gpus }: Shows): PlainColumn[] {
  return [
    ["TrainJob", "minmax(150px, 1.2fr)"],
    ["State", "104px"],
    ["Why", "minmax(220px, 3.2fr)"],
    ...(queue ? [["Queue", "minmax(100px, 0.8fr)"] as PlainColumn] : []),
    ...(gpus ? [["GPUs", "64px"] as PlainColumn] : []),
    ["Since", "72px"],
  ];
}

function Lines({ of, shows }: { of: readonly Waiting[]; shows: Shows }) {
  const lines = useVirtualRows(of, WIDE, NARROW);
  const reasonOf = useReasons(lines.shown.flatMap(({ job, isExplained }) => (job && !isExplained ? [job] : [])));
  return (
    <VirtualTable class="waiting" label="Waiting" {...plainHead(columns(shows))} of={lines}>
      {(each, place) => <Line key={each.key} of={each} reasonOf={reasonOf} shows={shows} place={place} />}
    </VirtualTable>
  );
}

interface LineProperties {
  of: Waiting;
  reasonOf(job: Listed): string;
  shows: Shows;
  place: RowPlace;
}

function Line({ of: { namespace, name, job, state, why, isExplained, queue, place, gpus, since }, reasonOf, shows, place: rowPlace }: LineProperties) {
  const now = useNow();
  const reason = (job && !isExplained && reasonOf(job)) || why;
  return (
    <div class="row" {...rowPlace}>
      <div role="cell" class="name">
        {job ? (
          <a href={href(jobPath(namespace, name))} onClick={onLink} title={name}>
            {name}
          </a>
        ) : (
          <span title={name}>{name}</span>
        )}{" "}
        <span class="namespace">{namespace}</span>
      </div>
      <div role="cell" class="state">
        <Tone of={state} />
      </div>
      <div role="cell" class="why" title={reason}>
        {reason}
      </div>
      {shows.queue && (
        <div role="cell" class="queue">
          {queue}
          {place !== null && <span class="quiet">place {place}</span>}
        </div>
      )}
      {shows.gpus && (
        <div role="cell" class="gpus">
          {gpus ? (
            <>
              {gpus}
              <span class="unit"> {gpus === 1 ? "GPU" : "GPUs"}</span>
            </>
          ) : (
            ""
          )}
        </div>
      )}
      <div role="cell" class="since" title={moment(since)}>
        {age(since, now)}
      </div>
    </div>
  );
}
