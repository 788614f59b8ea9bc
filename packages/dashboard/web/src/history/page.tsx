// The page of a training that has ended or is gone, with what was kept of it.

import { useMemo } from "preact/hooks";
import { type Line, add } from "../job/log_lines";
import { LogView, SOURCES, type Source, useLogChoice } from "../job/log_view";
import { LastValues, MetricCharts } from "../job/metrics";
import { extend } from "../job/store";
import { Events, Timeline } from "../job/timeline";
import { moment } from "../format";
import type { Checkpoint, Job, KubeEvent, MetricNews, Past } from "../model";
import { Back, Facts, Loading, Problems, RuntimeLink, useTitle } from "../parts";
import { useAnswer } from "../polling";
import { type PastId, type PastTab, comparePath, href, jobPath, onLink, pastPath, pastSweepPath, useLocation } from "../route";
import { EarlierRuns } from "./earlier";
import { Ending, took } from "./parts";
import { apiPath } from "./store";

const TABS: [PastTab, string][] = [
  ["overview", "Overview"],
  ["logs", "Logs"],
  ["objects", "Objects"],
];

interface Kept {
  training: Past;
  /** The TrainJob as it was last; null where it was not kept. */
  job: Job | null;
}

export function PastPage({ tab, ...id }: PastId & { tab: PastTab }) {
  const answer = useAnswer<Kept>(apiPath(id), id.uid);
  const kept = answer.value;
  useTitle(`${id.name}: history`);
  return (
    <main class={tab === "logs" ? "tall" : ""}>
      <Back to="/history">History</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {id.name} <span class="namespace">{id.namespace}</span>
        </h1>
        {kept && <Ending of={kept.training} />}
      </header>
      <Loading of={answer} />
      {kept && <Body kept={kept} tab={tab} />}
    </main>
  );
}

function Body({ kept: { training, job }, tab }: { kept: Kept; tab: PastTab }) {
  const { query } = useLocation();
  const search = query.size > 0 ? `?${query}` : "";
  return (
    <>
      <Presence of={training} />
      <PastFacts of={training} last={job?.trainerStatus?.checkpoint} />
      {training.message && <p class={`message ${training.state === "Failed" ? "bad" : ""}`}>{training.message}</p>}
      <nav class="tabs" aria-label="Views of the training">
        {TABS.map(([key, title]) => (
          <a key={key} href={href(pastPath(training, key) + search)} onClick={onLink} aria-current={key === tab ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {tab === "overview" && <Overview training={training} job={job} />}
      {tab === "logs" && <PastLogs of={training} />}
      {tab === "objects" && <PastObjects of={training} />}
    </>
  );
}

function Presence({ of }: { of: Past }) {
  return (
    <p class="message">
      {of.deleted ? `This TrainJob is gone since ${moment(of.deleted)}.` : ""}{" "}
      {of.forgotten ? `Its objects, events, logs and samples were forgotten on ${moment(of.forgotten)}.` : "What is shown was kept by the history."}{" "}
      {!of.deleted && (
        <a href={href(jobPath(of.namespace, of.name))} onClick={onLink}>
          The TrainJob in the cluster
        </a>
      )}
    </p>
  );
}

function PastFacts({ of, last }: { of: Past; last: Checkpoint | undefined }) {
  const runtime = of.runtime && (
    <>
      <RuntimeLink of={of} />
      {of.runtimeVersion && `, ${of.runtimeVersion}`}
    </>
  );
  const sweep = of.trial && (
    <a href={href(pastSweepPath({ namespace: of.namespace, name: of.trial.sweep, uid: of.trial.sweepUid }))} onClick={onLink}>
      {of.trial.sweep}, trial {of.trial.number}
    </a>
  );
  return (
    <Facts
      of={[
        ["Sweep", sweep ?? ""],
        ["Created", moment(of.created)],
        ["Started", moment(of.started)],
        ["Ended", moment(of.ended)],
        ["Deleted", moment(of.deleted)],
        ["Took", took(of)],
        ["Progress", of.progress === null ? "" : `${of.progress} %`],
        ["Last checkpoint", last ? `step ${last.step}, ${moment(last.time)}` : ""],
        ["State before it was deleted", of.ended || !of.deleted ? "" : of.state],
        ["Reason", of.reason],
        ["Runtime", runtime],
        ["Image", of.image],
        ["Nodes", of.nodes ?? ""],
        ["Owner", of.owner],
      ]}
    />
  );
}

function Overview({ training, job }: { training: Past; job: Job | null }) {
  const events = useAnswer<{ events: KubeEvent[] }>(`${apiPath(training)}/events`, training.uid);
  return (
    <>
      <section>
        <h2>Metrics</h2>
        <PastMetrics of={training} job={job} />
        <p>
          <a href={href(comparePath([], [training]))} onClick={onLink}>
            Compare with other TrainJobs
          </a>
        </p>
      </section>
      <EarlierRuns of={training} isPast />
      <div class="columns">
        <section>
          <h2>Timeline</h2>
          {job ? <Timeline job={job} /> : <p class="nothing">The TrainJob itself was not kept.</p>}
        </section>
        <section>
          <h2>Events</h2>
          <Loading of={events} />
          {events.value && <Events events={events.value.events} none="No events were kept." />}
        </section>
      </div>
    </>
  );
}

const NO_CURVES: MetricNews = { isReset: true, hasMore: false, series: [] };

function PastMetrics({ of, job }: { of: Past; job: Job | null }) {
  const answer = useAnswer<MetricNews>(`${apiPath(of)}/metrics`, of.uid);
  const curves = useMemo(() => extend(new Map(), answer.value ?? NO_CURVES), [answer.value]);
  if (curves.size > 0) return <MetricCharts curves={curves} />;
  return (
    <>
      <Loading of={answer} />
      {(answer.value || answer.problem) && <LastValues of={job?.trainerStatus ?? null} none="No metrics were kept." />}
    </>
  );
}

interface Container {
  node: string;
  container: string;
}

interface Tail extends Container {
  pod: string;
  lines: [stamp: string, text: string][];
}

interface PastLog {
  /** All that have lines, as [node, container]. */
  containers: [node: string, container: string][];
  /** The last lines of the one that was asked for, or of the first ones. */
  logs: Tail[];
}

const pathOf = ({ node, container }: Container) => `${node}/${container}`;

/** The last lines of containers, in the order in which they were written. */
export function linesOf(tails: readonly Pick<Tail, "lines">[]): Line[] {
  let lines: Line[] = [];
  let count = 0;
  tails.forEach((tail, source) => {
    lines = add(lines, source, tail.lines, count);
    count += tail.lines.length;
  });
  return lines;
}

/** Containers by node; the container is named where a node has several. */
export function sourcesOf(containers: readonly Container[]): Source[] {
  const counts = new Map<string, number>();
  for (const { node } of containers) counts.set(node, (counts.get(node) ?? 0) + 1);
  return containers.map((each) => ({ path: pathOf(each), label: counts.get(each.node)! > 1 ? pathOf(each) : each.node }));
}

function PastLogs({ of }: { of: Past }) {
  const source = useLocation().query.get("node");
  const asked = source ? `?${new URLSearchParams({ source })}` : "";
  const answer = useAnswer<PastLog>(`${apiPath(of)}/logs${asked}`, of.uid);
  const { containers = [], logs = [] } = answer.value ?? {};
  const all = useMemo(() => sourcesOf(containers.map(([node, container]) => ({ node, container }))), [answer.value]);
  const choice = useLogChoice(all);
  const shown = choice.source ? [choice.source] : all.slice(0, SOURCES);
  const lines = useMemo(() => {
    const known = new Map(logs.map((tail) => [pathOf(tail), tail]));
    return linesOf(shown.map(({ path }) => known.get(path) ?? { lines: [] }));
  }, [answer.value, choice.source?.path]);
  if (!answer.value) return <Loading of={answer} />;
  if (all.length === 0) return <p class="nothing">No lines were kept: they are read when a container has ended.</p>;
  const notes = (
    <>
      <Problems of={[answer.problem]} />
      <p class="quiet">The last lines of each container, as they were when it ended.</p>
    </>
  );
  return <LogView all={all} choice={choice} shown={shown} lines={lines} notes={notes} />;
}

function PastObjects({ of }: { of: Past }) {
  const answer = useAnswer<{ objects: { kind: string; name: string; yaml: string }[]; problems: string[] }>(`${apiPath(of)}/objects`, of.uid);
  return (
    <section aria-label="Objects">
      <p class="quiet">As the cluster had them last, without values that may be secret; the runtime as it was at the beginning.</p>
      <Loading of={answer} />
      <Problems of={answer.value?.problems ?? []} />
      {answer.value?.objects.length === 0 && <p class="nothing">No objects are kept.</p>}
      {answer.value?.objects.map(({ kind, name, yaml }) => (
        <section key={`${kind}/${name}`}>
          <h2>
            {kind} <span class="namespace">{name}</span>
          </h2>
          <pre class="yaml" tabIndex={0} aria-label={`YAML of ${kind} ${name}`}>
            {yaml}
          </pre>
        </section>
      ))}
    </section>
  );
}
