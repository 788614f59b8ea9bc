// The page of one runtime.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import { type Filters, read, select } from "../list/filters";
import { useListing } from "../list/store";
import { Table } from "../list/table";
import { CLUSTER_WIDE } from "../model";
import { Back, Facts, Problem, Problems, Yaml, useTitle } from "../parts";
import { href, newPath, onLink } from "../route";
import { useRuntimes } from "./store";
import { complete, runtimeId, usedRuntime } from "./usage";

export function RuntimePage({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
  const { runtimes, problems, isLoaded, problem } = useRuntimes();
  const key = runtimeId({ kind, namespace, name });
  const runtime = runtimes.find((each) => runtimeId(each) === key);
  const now = useNow();
  useTitle(name);
  const place = kind === CLUSTER_WIDE ? "clusterruntimes" : `runtimes/${encodeURIComponent(namespace)}`;
  return (
    <main>
      <Back to="/runtimes">All runtimes</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {name} <span class="namespace">{namespace || "cluster"}</span>
        </h1>
        {runtime?.support && <span class="tag warn">{runtime.support}</span>}
        {runtime && (
          <div class="actions">
            <a class="button" href={href(newPath(runtime))} onClick={onLink}>
              New TrainJob
            </a>
          </div>
        )}
      </header>
      {runtime?.description && <p>{runtime.description}</p>}
      <Problems of={[problem, ...problems]} />
      {isLoaded && !runtime && problems.length === 0 && <Problem>There is no such runtime.</Problem>}
      {runtime && (
        <Facts
          of={[
            ["Kind", kind],
            ["Framework", runtime.framework],
            ["Nodes", runtime.nodes],
            ["GPUs per node", runtime.devices],
            ["Image", runtime.image],
            ["Age", age(runtime.created, now)],
          ]}
        />
      )}
      <section>
        <h2>TrainJobs that use it</h2>
        <Users runtime={key} runtimes={runtimes} />
      </section>
      <section>
        <h2>YAML</h2>
        <Yaml path={`/api/${place}/${encodeURIComponent(name)}/yaml`} version="" of="runtime" />
      </section>
    </main>
  );
}

function Users({ runtime, runtimes }: { runtime: string; runtimes: Parameters<typeof complete>[1] }) {
  const { rows, isLoaded, problem } = useListing();
  const [filters, setFilters] = useState<Filters>(() => read(new URLSearchParams()));
  const users = useMemo(() => {
    const found = [...rows.values()].filter((row) => usedRuntime(row) === runtime);
    return select(complete(found, runtimes), filters);
  }, [rows, runtimes, runtime, filters]);
  if (problem) return <Problem>{problem}</Problem>;
  if (!isLoaded) return <p role="status">Loading ...</p>;
  if (users.length === 0) return <p class="nothing">No TrainJob that you may see uses it.</p>;
  return <Table rows={users} filters={filters} set={(changes) => setFilters((before) => ({ ...before, ...changes }))} />;
}
