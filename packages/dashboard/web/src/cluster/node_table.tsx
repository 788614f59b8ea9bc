// The nodes of the cluster: equal ones are grouped, and of very many those on the screen are in the document.

import { useMemo, useState } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import { id } from "../list/filters";
import { useListing } from "../list/store";
import { GroupCell, type PlainColumn, VirtualTable, plainHead, useVirtualRows } from "../list/virtual_table";
import type { Member } from "../model";
import { href, jobPath, onLink } from "../route";
import { toggled } from "../toggled";
import { closedOf } from "./capacity";
import { figure, measured } from "./figures";
import { Meter } from "./meter";
import { type NodeGroup, SHOWS, type Show, beginClosed, counts, devices, free, hardware, items, requested, select, summary } from "./nodes";

const WIDE = 58;
const NARROW = 124;
const GPUS = "GPUs";
const COLUMNS: readonly PlainColumn[] = [
  ["Node", "minmax(170px, 1.5fr)"],
  ["State", "minmax(128px, 0.7fr)"],
  [GPUS, "minmax(110px, 0.9fr)"],
  ["CPU", "minmax(140px, 1fr)"],
  ["Memory", "minmax(196px, 1.2fr)"],
  ["Trainings", "minmax(180px, 1.8fr)"],
];
const SHOW_TITLES: Record<Show, string> = { all: "All", free: "With free GPUs", trouble: "With problems" };
const BAD = new Set(["Not ready", "Unreachable", "Out of service"]);

export function NodeTable({ members, more }: { members: readonly Member[]; more: number }) {
  const [text, setText] = useState("");
  const [show, setShow] = useState<Show>("all");
  const [reversed, setReversed] = useState<ReadonlySet<string>>(new Set());
  const chosen = useMemo(() => select(members, text, show), [members, text, show]);
  const isClosed = beginClosed(chosen, text, show);
  const lines = useMemo(() => items(chosen, isClosed, reversed), [chosen, isClosed, reversed]);
  const count = useMemo(() => counts(members), [members]);
  const begin = (change: () => void) => (change(), setReversed(new Set<string>()));
  return (
    <section aria-label="Nodes">
      <h2>Nodes</h2>
      <search class="node-search">
        <div class="chips" role="group" aria-label="Show nodes">
          {SHOWS.filter((each) => each === "all" || count[each] > 0 || each === show).map((each) => (
            <button key={each} type="button" class="chip plain-chip" aria-pressed={show === each} onClick={() => begin(() => setShow(each))}>
              {SHOW_TITLES[each]}
              <span class="number">{count[each]}</span>
            </button>
          ))}
        </div>
        <input
          type="search"
          aria-label="Search nodes"
          placeholder="Name, GPU, state or training"
          value={text}
          onInput={(event) => {
            const next = event.currentTarget.value;
            begin(() => setText(next));
          }}
        />
      </search>
      {more > 0 && <p class="quiet">{more} more nodes are not listed; those in trouble and with trainings come first.</p>}
      {chosen.length === 0 ? (
        <p class="nothing">No node matches.</p>
      ) : (
        <Lines
          of={lines}
          hasDevices={members.some((member) => devices(member) > 0)}
          isOpen={({ key }) => isClosed === reversed.has(key)}
          onToggle={(key) => setReversed((before) => toggled(before, key))}
        />
      )}
    </section>
  );
}

interface LinesProperties {
  of: ReturnType<typeof items>;
  hasDevices: boolean;
  isOpen(group: NodeGroup): boolean;
  onToggle(key: string): void;
}

function Lines({ of, hasDevices, isOpen, onToggle }: LinesProperties) {
  const { rows } = useListing();
  const columns = COLUMNS.filter(([title]) => hasDevices || title !== GPUS);
  return (
    <VirtualTable class="nodes" label="Nodes" {...plainHead(columns)} of={useVirtualRows(of, WIDE, NARROW)}>
      {({ group, member }, place) =>
        group ? (
          <div key={group.key} class="row grouping" {...place}>
            <GroupCell
              title={group.title}
              count={group.members.length}
              summary={[group.instanceType, summary(group)].filter(Boolean).join(" · ")}
              span={columns.length}
              isOpen={isOpen(group)}
              onToggle={() => onToggle(group.key)}
            />
          </div>
        ) : (
          <div key={member.name} class="row" {...place}>
            <NodeCells of={member} hasDevices={hasDevices} isKnown={(training) => rows.has(id(training))} />
          </div>
        )
      }
    </VirtualTable>
  );
}

interface NodeCellsProperties {
  of: Member;
  hasDevices: boolean;
  isKnown(training: Training): boolean;
}

function NodeCells({ of, hasDevices, isKnown }: NodeCellsProperties) {
  const now = useNow();
  const why = [of.why.replace(/\.$/, ""), age(of.since, now)].filter(Boolean).join(", ");
  return (
    <>
      <div role="cell" class="name">
        <strong title={of.name}>{of.name}</strong>
        {of.troubles.length > 0 && why && (
          <span class="quiet" title={why}>
            {why}
          </span>
        )}
      </div>
      <div role="cell" class="states">
        {of.troubles.length === 0 && <span class="state good">Ready</span>}
        {of.troubles.map((trouble) => (
          <span key={trouble} class={`state ${BAD.has(trouble) ? "bad" : "warn"}`}>
            {trouble}
          </span>
        ))}
      </div>
      {hasDevices && (
        <div role="cell" class="amount gpus">
          <Devices of={of} />
        </div>
      )}
      <div role="cell" class="amount cpu">
        <Amount of={of.cpu} resource="cpu" node={of.name} unit="CPU" />
      </div>
      <div role="cell" class="amount memory">
        <Amount of={of.memory} resource="memory" node={of.name} unit="" />
      </div>
      <div role="cell" class="trainings">
        <Trainings of={of} isKnown={isKnown} />
      </div>
    </>
  );
}

function Devices({ of }: { of: Member }) {
  const total = devices(of);
  const taken = requested(of);
  const available = free(of);
  if (total === 0) return <span class="quiet none">none</span>;
  const names = hardware(of);
  if (taken === null) return <span title={names}>{total}</span>;
  const closed = of.devices.reduce((sum, device) => sum + closedOf(device), 0);
  return (
    <>
      <span class="figures" title={names}>
        {taken} of {total}
        <span class="unit"> GPUs</span>
        {available > 0 && <span class="free">{available} free</span>}
      </span>
      <Meter label={`Requested GPUs of ${of.name}`} total={total} requested={taken} closed={closed} text={`${taken} of ${total} requested, ${available} free`} />
    </>
  );
}

interface AmountProperties {
  of: Member["cpu"];
  resource: string;
  node: string;
  unit: string;
}

function Amount({ of: { total, requested: taken, used }, resource, node, unit }: AmountProperties) {
  const shown = (value: number | null) => figure(resource, value);
  if (taken === null) return <span>{shown(total)}</span>;
  const text = `${shown(taken)} of ${shown(total)} requested${used === null ? "" : `, ${measured(resource, used)} used`}`;
  return (
    <>
      <span class="figures" title={text}>
        {shown(taken)} of {shown(total)}
        {unit && <span class="unit"> {unit}</span>}
        {used !== null && <span class="quiet used">{measured(resource, used)} used</span>}
      </span>
      <Meter label={`Requested ${resource} of ${node}`} total={total} requested={taken} used={used} text={text} />
    </>
  );
}

/** So many trainings fit; the others are in a menu. */
const FIT = 2;

type Training = Member["trainings"][number];

function Trainings({ of, isKnown }: Omit<NodeCellsProperties, "hasDevices">) {
  if (of.otherPods === null) return <span class="quiet">not known</span>;
  const known = of.trainings.filter(isKnown);
  // JobSets that are no TrainJob's, or whose TrainJob the user does not see, are pods as others.
  const unknown = of.trainings.filter((training) => !isKnown(training));
  const pods = of.otherPods + unknown.reduce((sum, training) => sum + training.pods, 0);
  const rest = known.slice(FIT);
  return (
    <>
      <span class="links">
        {known.slice(0, FIT).map((training) => (
          <TrainingLink key={id(training)} of={training} />
        ))}
      </span>
      <span class="others quiet">
        {rest.length > 0 && (
          <details class="menu">
            <summary>{rest.length + of.moreTrainings} more</summary>
            <div class="panel">
              {rest.map((training) => (
                <TrainingLink key={id(training)} of={training} />
              ))}
              {of.moreTrainings > 0 && <p>{of.moreTrainings} more are not listed.</p>}
            </div>
          </details>
        )}
        {pods > 0 && `${pods} other ${pods === 1 ? "pod" : "pods"}`}
      </span>
    </>
  );
}

function TrainingLink({ of: { namespace, name, devices: gpus, pods } }: { of: Training }) {
  return (
    <span class="training">
      <a href={href(jobPath(namespace, name))} onClick={onLink} title={`${name} in ${namespace}: ${pods} ${pods === 1 ? "pod" : "pods"}`}>
        {name}
      </a>
      {gpus > 0 && <span class="quiet"> {gpus} {gpus === 1 ? "GPU" : "GPUs"}</span>}
    </span>
  );
}
