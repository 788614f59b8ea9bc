// The cluster: what its nodes have, what of it is free, and what waits.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age, amount } from "../format";
import { type Filters, read, select } from "../list/filters";
import { useListing } from "../list/store";
import { Table } from "../list/table";
import type { Capacity, Kind, Queues, Row, Workload } from "../model";
import { Grid, Loading, Notes, Problems, useTitle } from "../parts";
import { usePolled } from "../polling";
import { useRuntimes } from "../runtimes/store";
import { complete } from "../runtimes/usage";

const PAUSE = 15_000;
const PLAIN = new Set(["cpu", "memory"]);
const WAITING = new Set(["Submitted", "Created", "Pending", "Blocked", "Suspended"]);

/** Whether a TrainJob waits for somebody or something before its pods run. */
export function isWaiting(row: Pick<Row, "state" | "isDeleted">): boolean {
  return WAITING.has(row.state) && !row.isDeleted;
}

export function ClusterPage() {
  useTitle("Cluster");
  return (
    <main>
      <h1 tabIndex={-1}>Cluster</h1>
      <CapacitySection />
      <QueueSection />
      <WaitingJobs />
    </main>
  );
}

function CapacitySection() {
  const answer = usePolled<Capacity>("/api/capacity", PAUSE);
  const { value } = answer;
  const devices = value?.kinds.filter(({ resource }) => !PLAIN.has(resource)) ?? [];
  return (
    <section aria-label="Capacity">
      <h2>GPUs and other resources</h2>
      <Loading of={answer} />
      <Problems of={value?.problems ?? []} />
      {value && (
        <p class="quiet">
          {value.nodes} {value.nodes === 1 ? "node" : "nodes"}
          {value.closedNodes > 0 && `, of which ${value.closedNodes} cordoned or not ready`}
          {devices.length === 0 && "; none has GPUs"}
        </p>
      )}
      {value && value.kinds.length > 0 && <Kinds of={value.kinds} />}
    </section>
  );
}

const KIND_TITLES = ["Resource", "Product", "Nodes", "Used", "Of", "Free", "Most on one node"];

function Kinds({ of }: { of: Kind[] }) {
  return (
    <Grid label="Resources" titles={KIND_TITLES}>
      {of.map((kind) => (
        <tr key={`${kind.resource} ${kind.product}`}>
          <th scope="row">{kind.resource}</th>
          <td>{kind.product}</td>
          <td>{kind.nodes}</td>
          <td>
            {kind.used === null ? (
              "unknown"
            ) : (
              <span class="progress">
                <progress value={kind.used} max={Math.max(kind.total, 1e-9)} aria-label={`Used ${kind.resource} ${kind.product}`} />
                <span>{amount(kind.resource, kind.used)}</span>
              </span>
            )}
          </td>
          <td>{amount(kind.resource, kind.total)}</td>
          <td>{amount(kind.resource, kind.free)}</td>
          <td>{amount(kind.resource, kind.largestFree)}</td>
        </tr>
      ))}
    </Grid>
  );
}

function QueueSection() {
  const { value, problem } = usePolled<Queues>("/api/queues", PAUSE);
  if (!problem && (!value || !value.isServed)) return null;
  return (
    <section aria-label="Queues">
      <h2>Queues of Kueue</h2>
      <Problems of={[problem, ...(value?.problems ?? [])]} />
      <Notes of={value?.notes ?? []} />
      {value && value.queues.length === 0 && value.problems.length === 0 && <p class="nothing">There are no queues, and no Workloads.</p>}
      {value && value.queues.length > 0 && (
        <dl class="facts">
          {value.queues.map(({ namespace, name, waiting, admitted }) => (
            <div key={`${namespace}/${name}`}>
              <dt>
                {name} <span class="namespace">{namespace}</span>
              </dt>
              <dd>
                {waiting} waiting, {admitted} admitted
              </dd>
            </div>
          ))}
        </dl>
      )}
      {value && value.workloads.length > 0 && <Workloads of={value.workloads} />}
      {value && value.more > 0 && <p class="quiet">and {value.more} more</p>}
    </section>
  );
}

const WORKLOAD_TITLES = ["Workload", "Queue", "Priority", "GPUs", "Age", "Waits because"];

function Workloads({ of }: { of: Workload[] }) {
  const now = useNow();
  return (
    <Grid label="Waiting Workloads" titles={WORKLOAD_TITLES}>
      {of.map((workload) => (
        <tr key={workload.uid}>
          <th scope="row">
            {workload.owner || workload.name} <span class="namespace">{workload.namespace}</span>
          </th>
          <td>{workload.queue}</td>
          <td>{workload.priority}</td>
          <td>{workload.gpus}</td>
          <td>{age(workload.created, now)}</td>
          <td class="long">{workload.message}</td>
        </tr>
      ))}
    </Grid>
  );
}

function WaitingJobs() {
  const { rows, isLoaded, problem } = useListing();
  const { runtimes } = useRuntimes();
  const [filters, setFilters] = useState<Filters>(() => ({ ...read(new URLSearchParams()), isReversed: false }));
  const waiting = useMemo(
    () => select(complete([...rows.values()].filter(isWaiting), runtimes), filters),
    [rows, runtimes, filters],
  );
  const gpus = waiting.reduce((sum, row) => sum + (row.gpus ?? 0), 0);
  return (
    <section aria-label="Waiting TrainJobs">
      <h2>TrainJobs that wait</h2>
      <Problems of={[problem]} />
      {isLoaded && (
        <p class="quiet">
          {waiting.length === 0 ? "None." : `${waiting.length}, for ${gpus} GPUs together`}
        </p>
      )}
      {waiting.length > 0 && (
        <Table rows={waiting} filters={filters} set={(changes) => setFilters((before) => ({ ...before, ...changes }))} />
      )}
    </section>
  );
}
