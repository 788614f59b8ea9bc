// Which TrainJobs use which runtime, and what they get from it.

import { CLUSTER_WIDE, ENDED, type Listed, type Row, type Runtime } from "../model";

/** The identity of a runtime: two namespaces may have one of the same name. */
export function runtimeId({ kind, namespace, name }: Pick<Runtime, "kind" | "namespace" | "name">): string {
  return `${kind}/${kind === CLUSTER_WIDE ? "" : namespace}/${name}`;
}

/** The identity of the runtime that a TrainJob names. */
export function usedRuntime(row: Row): string {
  return runtimeId({ kind: row.runtimeKind, namespace: row.namespace, name: row.runtime });
}

/** Rows with the nodes and GPUs that they ask for, or that their runtime says; null where that is not known. */
export function complete(rows: Iterable<Row>, runtimes: readonly Runtime[]): Listed[] {
  const known = new Map(runtimes.map((runtime) => [runtimeId(runtime), runtime]));
  return Array.from(rows, (row) => {
    const runtime = known.get(usedRuntime(row));
    const nodes = row.nodes ?? runtime?.nodes ?? null;
    const perNode = row.devicesPerNode ?? runtime?.devices ?? null;
    return { ...row, nodes, gpus: nodes === null || perNode === null ? null : nodes * perNode };
  });
}

export interface Usage {
  /** All TrainJobs that name it. */
  all: number;
  /** Those that have neither ended nor are suspended. */
  active: number;
}

export function usage(rows: Iterable<Row>): Map<string, Usage> {
  const found = new Map<string, Usage>();
  for (const row of rows) {
    const key = usedRuntime(row);
    const counts = found.get(key) ?? { all: 0, active: 0 };
    counts.all++;
    if (!ENDED.has(row.state) && !row.isSuspended) counts.active++;
    found.set(key, counts);
  }
  return found;
}

/** The runtimes that TrainJobs name and nobody has made, or has deleted. */
export function missing(rows: Iterable<Row>, runtimes: readonly Runtime[]): { kind: string; namespace: string; name: string }[] {
  const known = new Set(runtimes.map(runtimeId));
  const found = new Map<string, { kind: string; namespace: string; name: string }>();
  for (const row of rows) {
    const key = usedRuntime(row);
    if (known.has(key) || !row.runtime || ENDED.has(row.state)) continue;
    const namespace = row.runtimeKind === CLUSTER_WIDE ? "" : row.namespace;
    found.set(key, { kind: row.runtimeKind, namespace, name: row.runtime });
  }
  return [...found.values()];
}
