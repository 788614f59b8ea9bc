// The queues of Kueue with their quotas.

import type { ClusterQueue, LocalQueue, Queues, Quota } from "../model";
import { Notes, Problems } from "../parts";
import { figure } from "./figures";
import { Meter } from "./meter";

export function QueueSection({ value, namespace }: { value: Queues; namespace: string }) {
  const local = value.queues.filter((queue) => !namespace || queue.namespace === namespace);
  const shown = (value.clusterQueues ?? []).filter(({ name }) => !namespace || local.some(({ clusterQueue }) => clusterQueue === name));
  const known = new Set(shown.map(({ name }) => name));
  const alone = local.filter(({ clusterQueue }) => !known.has(clusterQueue));
  return (
    <section aria-label="Queues">
      <h2>Queues of Kueue</h2>
      <Problems of={value.problems} />
      <Notes of={[...value.notes, ...notesOf(value)]} />
      {shown.length + local.length === 0 && value.problems.length === 0 && <p class="nothing">There are no queues{namespace && ` of ${namespace}`}.</p>}
      <ul class="queues" aria-label="Queues">
        {shown.map((queue) => (
          <QueueCard key={queue.name} of={queue} local={local.filter(({ clusterQueue }) => clusterQueue === queue.name)} />
        ))}
        {alone.map((queue) => (
          <li class="queue-card" key={`${queue.namespace}/${queue.name}`}>
            <LocalLine of={queue} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function notesOf(value: Queues): string[] {
  return [
    value.clusterQueues === null && value.queues.length > 0 && "Quotas are not shown: you may not list ClusterQueues.",
    value.moreClusterQueues > 0 && `${value.moreClusterQueues} more ClusterQueues are not shown.`,
    value.more > 0 && `${value.more} more Workloads wait than the list has.`,
  ].filter((note) => note !== false);
}

function held({ waiting, admitted }: Pick<LocalQueue, "waiting" | "admitted">): string {
  return `${waiting} waiting, ${admitted} admitted`;
}

function QueueCard({ of: queue, local }: { of: ClusterQueue; local: readonly LocalQueue[] }) {
  return (
    <li class="queue-card">
      <p class="kind-title">
        <strong>{queue.name}</strong>
        <span class="quiet">
          {queue.cohort && `cohort ${queue.cohort}, `}
          {held(queue)}
        </span>
      </p>
      {queue.stopped && <p class="problem">{queue.stopped}</p>}
      <dl class="quotas">
        {queue.quotas.map((quota) => (
          <QuotaLine key={`${quota.flavor} ${quota.resource}`} of={quota} queue={queue.name} />
        ))}
      </dl>
      {local.map((each) => (
        <LocalLine key={`${each.namespace}/${each.name}`} of={each} />
      ))}
    </li>
  );
}

function QuotaLine({ of: { flavor, resource, nominal, reserved, borrowed }, queue }: { of: Quota; queue: string }) {
  const shown = (value: number) => figure(resource, value);
  const text = `${shown(reserved)} of ${shown(nominal)} reserved${borrowed > 0 ? `, ${shown(borrowed)} of it borrowed` : ""}`;
  return (
    <div>
      <dt>
        {resource} <span class="quiet">{flavor}</span>
      </dt>
      <dd>
        <Meter label={`Reserved ${resource} ${flavor} of ${queue}`} total={nominal} requested={reserved} text={text} />
        <span>{text}</span>
      </dd>
    </div>
  );
}

function LocalLine({ of }: { of: LocalQueue }) {
  return (
    <p class="local-queue">
      {of.name} <span class="quiet">{of.namespace}</span>
      <span class="quiet">{held(of)}</span>
    </p>
  );
}
