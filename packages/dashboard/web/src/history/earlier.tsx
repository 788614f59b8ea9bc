// The earlier runs of a TrainJob: trainings of its name that came before it.

import { useContext } from "preact/hooks";
import { COMPARED } from "../compare/store";
import { zone } from "../format";
import type { Past, PastList } from "../model";
import { Grid } from "../parts";
import { useAnswer } from "../polling";
import { comparePath, href, onLink, pastPath } from "../route";
import { Ending, LastValue, Time, endOf, took } from "./parts";
import { HasHistory, listPath } from "./store";

interface Run {
  namespace: string;
  name: string;
  uid: string;
  created: string | null;
}

/** What those of its name before it are asked for with. */
export function earlierQuery({ namespace, name, created }: Run): URLSearchParams {
  const seconds = created ? Date.parse(created) / 1000 : NaN;
  return new URLSearchParams({ namespace, name, ...(Number.isNaN(seconds) ? {} : { before: String(seconds) }) });
}

/** They can be compared with it, which is in the cluster or in the history itself. */
export function EarlierRuns({ of, isPast = false }: { of: Run; isPast?: boolean }) {
  return useContext(HasHistory) ? <Runs key={of.uid} of={of} isPast={isPast} /> : null;
}

function Runs({ of, isPast }: { of: Run; isPast: boolean }) {
  const { value, problem } = useAnswer<PastList>(listPath(earlierQuery(of)), of.uid);
  const runs = (value?.trainings ?? []).filter(({ uid }) => uid !== of.uid);
  const compare = (others: readonly Past[]) => (isPast ? comparePath([], [of, ...others]) : comparePath([of], others));
  if (runs.length === 0 && !problem) return null;
  const most = runs.slice(0, COMPARED - 1);
  return (
    <section>
      <h2>Earlier runs</h2>
      {problem && <p class="quiet">{problem}</p>}
      {runs.length > 0 && (
        <>
          <p>
            <a href={href(compare(most))} onClick={onLink}>
              {most.length === 1 ? "Compare with the earlier run" : `Compare with the last ${most.length}`}
            </a>
          </p>
          <Grid label="Earlier runs" titles={[`Ended (${zone()})`, "State", "Took", "Last value", "Nodes", "Image", ""]}>
            {runs.map((run) => (
              <tr key={run.uid}>
                <th scope="row">
                  <a href={href(pastPath(run))} onClick={onLink}>
                    <Time of={endOf(run)} />
                  </a>
                </th>
                <td>
                  <Ending of={run} />
                </td>
                <td>{took(run)}</td>
                <td>
                  <LastValue of={run} />
                </td>
                <td>{run.nodes ?? ""}</td>
                <td>{run.image}</td>
                <td>
                  <a href={href(compare([run]))} onClick={onLink}>
                    compare
                  </a>
                </td>
              </tr>
            ))}
          </Grid>
        </>
      )}
    </section>
  );
}
