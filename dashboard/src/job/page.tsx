// The page of one TrainJob.

import { useMemo } from "preact/hooks";
import { trainJobPath } from "../api";
import { Charts } from "../charts/charts";
import { useChartOptions } from "../charts/use_options";
import { useNow } from "../clock";
import { age, duration, short } from "../format";
import type { Job, Node } from "../model";
import { Back, type Fact, Facts, Grid, Problem, Problems, Progress, State, Yaml, useTitle } from "../parts";
import { type Tab, comparePath, href, jobPath, onLink, runtimePath, useLocation } from "../route";
import { Actions } from "./actions";
import { BuiltObjects } from "./objects";
import { ExplanationView, useExplanation } from "./explanation";
import { Logs } from "./logs";
import { type Page, usePage } from "./store";
import { Events, Timeline } from "./timeline";

const TABS: [Tab, string][] = [
  ["overview", "Overview"],
  ["logs", "Logs"],
  ["yaml", "YAML"],
  ["objects", "Objects"],
];

export function JobPage({ namespace, name, tab }: { namespace: string; name: string; tab: Tab }) {
  const page = usePage(namespace, name);
  const { job } = page;
  useTitle(job ? `${name}: ${job.state}` : name);
  return (
    <main>
      <Back to="/">All TrainJobs</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {name} <span class="namespace">{namespace}</span>
        </h1>
        {job && !page.isGone && <State of={job} />}
        {job && !page.isGone && <Actions job={job} />}
      </header>
      {page.problem && <Problem>{page.problem}</Problem>}
      {page.isGone && <Problem>{job ? "This TrainJob was deleted. What is shown was its last state." : "There is no such TrainJob."}</Problem>}
      {job ? <Body page={page} job={job} tab={tab} /> : !page.isGone && !page.problem && <p role="status">Loading ...</p>}
    </main>
  );
}

function Body({ page, job, tab }: { page: Page; job: Job; tab: Tab }) {
  const answer = useExplanation(job, page.nodes, tab === "overview" && !page.isGone);
  const { query } = useLocation();
  const search = query.size > 0 ? `?${query}` : "";
  const isExplained = tab === "overview" && (answer.explanation?.causes.length ?? 0) > 0;
  return (
    <>
      <JobFacts job={job} />
      {job.message && !isExplained && <p class={`message ${job.state === "Failed" ? "bad" : ""}`}>{job.message}</p>}
      <Problems of={page.problems} />
      <nav class="tabs" aria-label="Views of the TrainJob">
        {TABS.map(([key, title]) => (
          <a
            key={key}
            href={href(jobPath(job.namespace, job.name, key) + search)}
            onClick={onLink}
            aria-current={key === tab ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab === "overview" && <ExplanationView of={answer} />}
      {tab === "overview" && <Overview page={page} job={job} />}
      {tab === "logs" && <Logs namespace={job.namespace} nodes={page.nodes} />}
      {tab === "objects" && <BuiltObjects job={job} isGone={page.isGone} />}
      {tab === "yaml" && (
        <Yaml path={`${trainJobPath(job)}/yaml`} version={page.isGone ? null : job.resourceVersion} of="TrainJob" />
      )}
    </>
  );
}

function JobFacts({ job }: { job: Job }) {
  const now = useNow();
  const status = job.trainerStatus;
  const end = job.ended ? Date.parse(job.ended) : now;
  const facts: Fact[] = [
    ["Progress", job.progress === null ? "" : <Progress of={job} />],
    ["Time left", job.remaining === null || job.isSuspended ? "" : job.remainingText || duration(job.remaining)],
    ["Step", fraction(status?.currentStep, status?.totalSteps)],
    ["Epoch", fraction(status?.currentEpoch, status?.totalEpochs)],
    ["Last report", status?.lastUpdatedTime && !job.ended ? `${age(status.lastUpdatedTime, now)} ago` : ""],
    ["Runtime", <RuntimeLink of={job} />],
    ["Nodes", job.nodes ?? ""],
    ["GPUs per node", job.devicesPerNode ?? ""],
    ["Owner", job.owner],
    [job.ended ? "Took" : "Runs for", job.started ? age(job.started, end) : ""],
    ...job.steps.map((step): Fact => [
      step.name,
      [step.state, step.progressPercentage === undefined ? "" : `${step.progressPercentage} %`].filter(Boolean).join(", "),
    ]),
  ];
  return <Facts of={facts} />;
}

function RuntimeLink({ of: { runtime, runtimeKind, namespace } }: { of: Job }) {
  return (
    <a href={href(runtimePath({ kind: runtimeKind, namespace, name: runtime }))} onClick={onLink}>
      {runtime}
    </a>
  );
}

function fraction(done: number | undefined, total: number | undefined): string {
  if (done === undefined) return "";
  return total === undefined ? String(done) : `${done} of ${total}`;
}

function Overview({ page, job }: { page: Page; job: Job }) {
  return (
    <>
      <section>
        <h2>Metrics</h2>
        {page.curves.size > 0 ? <Metrics page={page} /> : <LastValues job={job} />}
        <p>
          <a href={href(comparePath([job]))} onClick={onLink}>
            Compare with other TrainJobs
          </a>
        </p>
      </section>
      <section>
        <h2>Nodes</h2>
        <Nodes nodes={page.nodes} />
      </section>
      <div class="columns">
        <section>
          <h2>Timeline</h2>
          <Timeline job={job} />
        </section>
        <section>
          <h2>Events</h2>
          <Events events={page.events} />
        </section>
      </div>
    </>
  );
}

function Metrics({ page: { curves } }: { page: Page }) {
  const setting = useChartOptions();
  const lines = useMemo(
    () => Array.from(curves, ([id, points]) => ({ id, label: "", points, tone: points.kind === "eval" ? 1 : 0 })),
    [curves],
  );
  return <Charts lines={lines} {...setting} />;
}

/** What is left when the pod with the log is gone. */
function LastValues({ job }: { job: Job }) {
  const status = job.trainerStatus;
  const values = [
    ...Object.entries(status?.trainMetrics ?? {}).map(([name, value]) => [name, "", value] as const),
    ...Object.entries(status?.evalMetrics ?? {}).map(([name, value]) => [name, "evaluation", value] as const),
  ];
  if (values.length === 0)
    return (
      <p class="nothing">
        No metrics yet. A training reports them with <code>trainer.progress.report</code>, and they are shown as long as
        its first pod exists.
      </p>
    );
  return (
    <dl class="facts">
      {values.map(([name, kind, value]) => (
        <div key={`${kind}/${name}`}>
          <dt>
            {name} {kind && <span class="tag">{kind}</span>}
          </dt>
          <dd>{short(Number(value)) || value}</dd>
        </div>
      ))}
    </dl>
  );
}

const NODE_TITLES = ["Node", "Phase", "Restarts", "Requests", "Host", "Age", "Pod"];

function Nodes({ nodes }: { nodes: Node[] }) {
  const now = useNow();
  if (nodes.length === 0) return <p class="nothing">There are no pods now.</p>;
  return (
    <Grid label="Nodes" titles={NODE_TITLES}>
      {nodes.map((node) => (
        <tr key={node.uid}>
          <th scope="row">{node.node}</th>
          <td>
            {node.phase}
            {node.reason && <span class="tag warn">{node.reason}</span>}
          </td>
          <td>{node.restarts}</td>
          <td>
            {Object.entries(node.requests)
              .map(([resource, amount]) => `${resource} ${amount}`)
              .join(", ")}
          </td>
          <td>{node.host}</td>
          <td>{age(node.created, now)}</td>
          <td>{node.name}</td>
        </tr>
      ))}
    </Grid>
  );
}
