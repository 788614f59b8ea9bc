// The page of one TrainJob.

import { useEffect, useState } from "preact/hooks";
import { request, trainJobPath } from "../api";
import { useNow } from "../clock";
import { age, duration, short } from "../format";
import type { Job, Node } from "../model";
import { Problem, Progress, State } from "../parts";
import { type Tab, href, jobPath, onLink } from "../route";
import { Actions } from "./actions";
import { Charts } from "./charts";
import { Logs } from "./logs";
import { type Page, usePage } from "./store";
import { Events, Timeline } from "./timeline";

const TABS: [Tab, string][] = [
  ["overview", "Overview"],
  ["logs", "Logs"],
  ["yaml", "YAML"],
];

export function JobPage({ namespace, name, tab }: { namespace: string; name: string; tab: Tab }) {
  const page = usePage(namespace, name);
  const { job } = page;
  useEffect(() => {
    document.title = job ? `${name}: ${job.state}` : name;
  }, [name, job?.state]);
  return (
    <main>
      <p class="back">
        <a href={href("/")} onClick={onLink}>
          ← All TrainJobs
        </a>
      </p>
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
  return (
    <>
      <Facts job={job} />
      {job.message && <p class={`message ${job.state === "Failed" ? "bad" : ""}`}>{job.message}</p>}
      {page.problems.map((problem) => (
        <Problem key={problem}>{problem}</Problem>
      ))}
      <nav class="tabs" aria-label="Views of the TrainJob">
        {TABS.map(([key, title]) => (
          <a
            key={key}
            href={href(jobPath(job.namespace, job.name, key))}
            onClick={onLink}
            aria-current={key === tab ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab === "overview" && <Overview page={page} job={job} />}
      {tab === "logs" && <Logs namespace={job.namespace} nodes={page.nodes} />}
      {tab === "yaml" && <Yaml job={job} isGone={page.isGone} />}
    </>
  );
}

function Facts({ job }: { job: Job }) {
  const now = useNow();
  const status = job.trainerStatus;
  const end = job.ended ? Date.parse(job.ended) : now;
  const facts: [string, preact.ComponentChildren][] = [
    ["Progress", job.progress === null ? "" : <Progress of={job} />],
    ["Time left", job.remaining === null || job.isSuspended ? "" : job.remainingText || duration(job.remaining)],
    ["Step", fraction(status?.currentStep, status?.totalSteps)],
    ["Epoch", fraction(status?.currentEpoch, status?.totalEpochs)],
    ["Last report", status?.lastUpdatedTime && !job.ended ? `${age(status.lastUpdatedTime, now)} ago` : ""],
    ["Runtime", job.runtime],
    ["Nodes", job.nodes ?? ""],
    [job.ended ? "Took" : "Runs for", job.started ? age(job.started, end) : ""],
    ...job.steps.map((step): [string, string] => [
      step.name,
      [step.state, step.progressPercentage === undefined ? "" : `${step.progressPercentage} %`].filter(Boolean).join(", "),
    ]),
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== "")
        .map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
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
        {page.curves.size > 0 ? <Charts curves={page.curves} /> : <LastValues job={job} />}
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

/** What is left when the pod with the log is gone. */
function LastValues({ job }: { job: Job }) {
  const status = job.trainerStatus;
  const values = [
    ...Object.entries(status?.trainMetrics ?? {}).map(([name, value]) => [name, "", value] as const),
    ...Object.entries(status?.evalMetrics ?? {}).map(([name, value]) => [name, "evaluation", value] as const),
  ];
  if (values.length === 0) return <Charts curves={new Map()} />;
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

function Nodes({ nodes }: { nodes: Node[] }) {
  const now = useNow();
  if (nodes.length === 0) return <p class="nothing">There are no pods now.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Nodes">
      <table class="nodes">
        <thead>
          <tr>
            {["Node", "Phase", "Restarts", "Requests", "Host", "Age", "Pod"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
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
        </tbody>
      </table>
    </div>
  );
}

function Yaml({ job, isGone }: { job: Job; isGone: boolean }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (isGone) return;
    let isCurrent = true;
    request<{ yaml: string }>("GET", `${trainJobPath(job)}/yaml`).then(
      ({ yaml }) => isCurrent && (setText(yaml), setProblem("")),
      (error: Error) => isCurrent && setProblem(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [job.uid, job.resourceVersion, isGone]);
  return (
    <section aria-label="YAML">
      {problem && <Problem>{problem}</Problem>}
      <pre class="yaml" tabIndex={0} aria-label="YAML of the TrainJob">
        {text}
      </pre>
    </section>
  );
}
