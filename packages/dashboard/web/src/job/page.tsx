// The page of one TrainJob.

import { useContext } from "preact/hooks";
import { trainJobPath } from "../api";
import { useNow } from "../clock";
import { age, duration } from "../format";
import { EarlierRuns } from "../history/earlier";
import { write } from "../history/filters";
import { HasHistory } from "../history/store";
import { phaseOf } from "../list/filters";
import type { Job, Membership, Node } from "../model";
import { Back, type Fact, Facts, Grid, Problem, Problems, Progress, State, Yaml, useTitle } from "../parts";
import { type Tab, comparePath, href, jobPath, onLink, pastPath, sweepPath, useLocation } from "../route";
import { Actions } from "./actions";
import { BuiltObjects } from "./objects";
import { ExplanationView, useExplanation } from "./explanation";
import { Logs } from "./logs";
import { LastValues, MetricCharts } from "./metrics";
import { failedFirst, isTroubled } from "./node_order";
import { RecipeView } from "./recipe";
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
    <main class={tab === "logs" ? "tall" : ""}>
      <Back to="/">All TrainJobs</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {name} <span class="namespace">{namespace}</span>
        </h1>
        {job && !page.isGone && <State of={job} />}
        {job && !page.isGone && <Actions job={job} />}
      </header>
      {page.problem && <Problem>{page.problem}</Problem>}
      {page.isGone && <Gone namespace={namespace} name={name} job={job} />}
      {job ? <Body page={page} job={job} tab={tab} /> : !page.isGone && !page.problem && <p role="status">Loading ...</p>}
    </main>
  );
}

/** Why nothing changes any more, and where it may be found. */
function Gone({ namespace, name, job }: { namespace: string; name: string; job: Job | null }) {
  const path = job ? pastPath(job) : write({ text: name, namespace, state: "", onlyDeleted: false });
  return (
    <>
      <Problem>{job ? "This TrainJob was deleted. What is shown was its last state." : "There is no such TrainJob."}</Problem>
      {useContext(HasHistory) && (
        <p>
          <a href={href(path)} onClick={onLink}>
            {job ? "What the history has kept of it" : `Look for ${name} in the history`}
          </a>
        </p>
      )}
    </>
  );
}

function Body({ page, job, tab }: { page: Page; job: Job; tab: Tab }) {
  const answer = useExplanation(job, page.nodes, tab === "overview" && !page.isGone);
  const { query } = useLocation();
  const search = query.size > 0 ? `?${query}` : "";
  const isExplained = tab === "overview" && (answer.explanation?.causes.length ?? 0) > 0;
  return (
    <>
      {tab !== "logs" && job.trial && <TrialOf of={job.trial} namespace={job.namespace} />}
      {tab !== "logs" && <JobFacts job={job} />}
      {job.message && job.state !== "Complete" && !isExplained && (
        <p class={`message ${job.state === "Failed" ? "bad" : ""}`}>{job.message}</p>
      )}
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

/** The sweep that it is a trial of, with what the sweep has chosen for it. */
export function TrialOf({ of: { sweep, number, parameters, pruned }, namespace }: { of: Membership; namespace: string }) {
  return (
    <section class="trial-of" aria-label="Sweep">
      <p>
        Trial {number} of sweep{" "}
        <a href={href(sweepPath({ namespace, name: sweep }))} onClick={onLink}>
          {sweep}
        </a>
        {pruned && <span class="quiet"> was stopped: {pruned}</span>}
      </p>
      {parameters.length > 0 && (
        <dl class="parameters" aria-label="Parameters of the trial" tabIndex={0}>
          {parameters.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function JobFacts({ job }: { job: Job }) {
  const now = useNow();
  const status = job.trainerStatus;
  const end = job.ended ? Date.parse(job.ended) : now;
  const facts: Fact[] = [
    ["Progress", job.progress === null ? "" : <Progress of={job} />],
    ["Time left", job.isSuspended ? "" : job.remainingText || (job.remaining === null ? "" : duration(job.remaining))],
    ["Step", fraction(status?.currentStep, status?.totalSteps)],
    ["Epoch", fraction(status?.currentEpoch, status?.totalEpochs)],
    ["Last report", status?.lastUpdatedTime && !job.ended ? `${age(status.lastUpdatedTime, now)} ago` : ""],
    ["Last checkpoint", checkpointOf(job, now)],
    ["Restarts", job.restarts],
    [spanOf(job), age(isHeld(job) ? job.since : job.started, end)],
    ...job.steps.map((step): Fact => [
      step.name,
      [step.state, step.progressPercentage === undefined ? "" : `${step.progressPercentage} %`].filter(Boolean).join(", "),
    ]),
  ];
  return <Facts of={facts} />;
}

function checkpointOf({ trainerStatus, unsaved }: Job, now: number): string {
  const last = trainerStatus?.checkpoint;
  return last ? [`step ${last.step}, ${age(last.time, now)} ago`, unsaved].filter(Boolean).join("; ") : "";
}

/** Whether it waits for somebody or something before its pods run. */
function isHeld(job: Job): boolean {
  return phaseOf(job.state) === "waiting";
}

function spanOf(job: Job): string {
  if (job.ended) return "Took";
  if (job.isSuspended) return "Suspended for";
  return isHeld(job) ? "Waits for" : "Runs for";
}

function fraction(done: number | undefined, total: number | undefined): string {
  if (done === undefined) return "";
  return total === undefined ? String(done) : `${done} of ${total}`;
}

function Overview({ page, job }: { page: Page; job: Job }) {
  return (
    <>
      <RecipeView job={job} nodes={page.nodes} />
      <section aria-label="Timeline">
        <h2>Timeline</h2>
        <Timeline job={job} nodes={page.nodes} />
      </section>
      <section>
        <h2>Metrics</h2>
        {page.curves.size > 0 ? <MetricCharts curves={page.curves} /> : <LastValues of={job.trainerStatus} none={<NoMetrics of={job} />} />}
        <p>
          <a href={href(comparePath([job]))} onClick={onLink}>
            Compare with other TrainJobs
          </a>
        </p>
      </section>
      <EarlierRuns of={job} />
      <section>
        <h2>Nodes</h2>
        <Nodes nodes={page.nodes} />
      </section>
      <section>
        <h2>Events</h2>
        <Events events={page.events} />
      </section>
    </>
  );
}

function NoMetrics({ of: { ended } }: { of: Job }) {
  return (
    <>
      {ended ? "It reported no metrics." : "No metrics yet."} A training prints them, such as <code>loss=0.31</code>, or reports them with{" "}
      <code>trainer.progress.report</code>, and they are shown as long as its first pod exists.
    </>
  );
}

const NODE_TITLES = ["Node", "Phase", "Restarts", "Host", "Age", "Pod"];

function Nodes({ nodes }: { nodes: Node[] }) {
  const now = useNow();
  if (nodes.length === 0) return <p class="nothing">There are no pods now.</p>;
  const hasRequests = nodes.some(({ requests }) => Object.keys(requests).length > 0);
  return (
    <Grid label="Nodes" titles={hasRequests ? [...NODE_TITLES, "Requests"] : NODE_TITLES}>
      {failedFirst(nodes).map((node) => (
        <tr class={isTroubled(node) ? "troubled" : ""} key={node.uid}>
          <th scope="row">{node.node}</th>
          <td>
            {node.phase}
            {node.reason && <span class="tag warn">{node.reason}</span>}
          </td>
          <td>{node.restarts}</td>
          <td>{node.host}</td>
          <td>{age(node.created, now)}</td>
          <td>{node.name}</td>
          {hasRequests && (
            <td>
              {Object.entries(node.requests)
                .map(([resource, amount]) => `${resource} ${amount}`)
                .join(", ")}
            </td>
          )}
        </tr>
      ))}
    </Grid>
  );
}
