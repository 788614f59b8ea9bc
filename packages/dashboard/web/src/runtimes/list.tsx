// The runtimes, and what uses them.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import { write, read } from "../list/filters";
import { SearchField } from "../list/keys";
import { useListing } from "../list/store";
import { CLUSTER_WIDE, type Runtime } from "../model";
import { Grid, Notes, Problem, Problems, useTitle } from "../parts";
import { href, onLink, runtimePath } from "../route";
import { useRuntimes } from "./store";
import { type Usage, missing, runtimeId, usage } from "./usage";

const NOBODY: Usage = { all: 0, active: 0 };

export function RuntimeList({ query }: { query: URLSearchParams }) {
  const { runtimes, problems, notes, isLoaded, problem } = useRuntimes();
  const listing = useListing();
  const chosen = query.get("namespace") ?? "";
  const own = <T extends { namespace: string }>(each: T) => !chosen || each.namespace === chosen;
  const uses = useMemo(() => usage([...listing.rows.values()].filter(own)), [listing.rows, chosen]);
  const lost = useMemo(() => (isLoaded && problems.length === 0 ? missing(listing.rows.values(), runtimes) : []), [listing.rows, runtimes]);
  const [text, setText] = useState("");
  useTitle("Runtimes");
  // Those of the cluster are there for every namespace.
  const there = runtimes.filter((runtime) => !runtime.namespace || own(runtime));
  const shown = there.filter(({ name, namespace, framework, description }) =>
    `${namespace}/${name} ${framework} ${description}`.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <main>
      <h1 tabIndex={-1}>Runtimes</h1>
      <Problems of={[problem, listing.problem, ...problems]} />
      {lost.map((each) => (
        <Problem key={runtimeId(each)}>
          TrainJobs name the {each.kind} {each.name}
          {each.namespace && ` of ${each.namespace}`}, which does not exist.
        </Problem>
      ))}
      <search class="filters">
        <SearchField text={text} onText={setText} />
      </search>
      <p class="count" role="status">
        {isLoaded ? `${shown.length} of ${there.length} runtimes` : problem ? "" : "Loading ..."}
      </p>
      <Notes of={notes} />
      {isLoaded && runtimes.length === 0 && problems.length === 0 && (
        <p class="nothing">
          There are no runtimes: <code>trainer install-runtimes</code> installs ours.
        </p>
      )}
      {shown.length > 0 && <RuntimeTable runtimes={shown} uses={uses} chosen={chosen} />}
    </main>
  );
}

const TITLES = ["Runtime", "Framework", "Nodes", "GPUs per node", "TrainJobs", "Image", "Age"];

function RuntimeTable({ runtimes, uses, chosen }: { runtimes: Runtime[]; uses: Map<string, Usage>; chosen: string }) {
  const now = useNow();
  return (
    <Grid label="Runtimes" titles={TITLES}>
      {runtimes.map((runtime) => (
        <tr key={runtimeId(runtime)}>
          <th scope="row">
            <a href={href(runtimePath(runtime))} onClick={onLink}>
              {runtime.name}
            </a>{" "}
            <span class="namespace">{runtime.namespace || "cluster"}</span>
            {runtime.support && <span class="tag warn">{runtime.support}</span>}
            {runtime.description && <p class="description">{runtime.description}</p>}
          </th>
          <td>{runtime.framework}</td>
          <td>{runtime.nodes}</td>
          <td>{runtime.devices}</td>
          <td>
            <Uses of={runtime} usage={uses.get(runtimeId(runtime)) ?? NOBODY} chosen={chosen} />
          </td>
          <td>{runtime.image}</td>
          <td title={runtime.created ?? ""}>{age(runtime.created, now)}</td>
        </tr>
      ))}
    </Grid>
  );
}

function Uses({ of, usage: { all, active }, chosen }: { of: Runtime; usage: Usage; chosen: string }) {
  if (all === 0) return <span class="quiet">none</span>;
  const namespace = of.kind === CLUSTER_WIDE ? chosen : of.namespace;
  const path = write({ ...read(new URLSearchParams()), runtime: of.name, namespace });
  return (
    <a href={href(path)} onClick={onLink}>
      {all}
      {active > 0 && `, ${active} active`}
    </a>
  );
}
