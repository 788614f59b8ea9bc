// The cluster: what its nodes have, what of it is free, what waits and why, and the nodes with what is on them.

import { useListing } from "../list/store";
import type { Capacity, Queues } from "../model";
import { Notes, Problems, useTitle } from "../parts";
import { usePolled } from "../polling";
import { Kinds, PLAIN } from "./capacity";
import "./cluster.css";
import { NodeTable } from "./node_table";
import { QueueSection } from "./queues";
import { WaitingList } from "./waiting_list";

const PAUSE = 15_000;

export function ClusterPage({ query }: { query: URLSearchParams }) {
  const capacity = usePolled<Capacity>("/api/capacity", PAUSE);
  const queues = usePolled<Queues>("/api/queues", PAUSE);
  const namespace = query.get("namespace") ?? "";
  const listing = useListing();
  const { value } = capacity;
  // What has lost the cluster says it once.
  const problems = listing.problem ? [listing.problem] : [capacity.problem, queues.problem];
  useTitle("Cluster");
  return (
    <main class="wide cluster">
      <h1 tabIndex={-1}>Cluster</h1>
      {value && value.nodes > 0 && <p class="quiet lead">{lead(value)}</p>}
      <Problems of={[...problems, ...(value?.problems ?? [])]} />
      <section aria-label="Capacity">
        {!value && problems.every((problem) => !problem) && <p role="status">Loading ...</p>}
        <Notes of={value?.notes ?? []} />
        {value && value.kinds.length > 0 && <Kinds of={value.kinds} />}
      </section>
      <WaitingList namespace={namespace} workloads={queues.value?.workloads ?? []} />
      {queues.value?.isServed && <QueueSection value={queues.value} namespace={namespace} />}
      {value && value.members.length > 0 && <NodeTable members={value.members} more={value.moreNodes} />}
    </main>
  );
}

/** The nodes in a sentence. */
export function lead({ nodes, closedNodes, kinds }: Pick<Capacity, "nodes" | "closedNodes" | "kinds">): string {
  const hasDevices = kinds.some(({ resource }) => !PLAIN.has(resource));
  return [
    `${nodes} ${nodes === 1 ? "node" : "nodes"}`,
    closedNodes > 0 && `${nodes === 1 ? "which" : `${closedNodes} of them`} ${closedNodes === 1 ? "takes" : "take"} no pods`,
    !hasDevices && nodes > 0 && (nodes === 1 ? "no GPUs" : "none has GPUs"),
  ]
    .filter(Boolean)
    .join(", ");
}
