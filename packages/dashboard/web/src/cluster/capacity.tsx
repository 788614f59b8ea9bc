// What the nodes have together, by product.

import type { Kind } from "../model";
import { figure, measured } from "./figures";
import { Meter } from "./meter";
import { product as plain } from "./nodes";

const TITLES: Record<string, string> = { cpu: "CPU", memory: "Memory" };

export const PLAIN = new Set(Object.keys(TITLES));

export function Kinds({ of }: { of: readonly Kind[] }) {
  return (
    <ul class="kinds" aria-label="Resources">
      {of.map((kind) => (
        <KindCard key={`${kind.resource} ${kind.product}`} of={kind} />
      ))}
    </ul>
  );
}

/** What is neither requested nor free: it is on nodes that take no pods. */
export function closedOf({ total, requested, free }: Pick<Kind, "total" | "requested" | "free">): number {
  return Math.max(total - (requested ?? 0) - (free ?? 0), 0);
}

function KindCard({ of: kind }: { of: Kind }) {
  const { resource, product, total, requested, used, free, largestFree } = kind;
  const isPlain = PLAIN.has(resource);
  const shown = (value: number | null) => figure(resource, value);
  const closed = requested === null ? 0 : closedOf(kind);
  const text = `${shown(requested)} of ${shown(total)} requested`;
  return (
    <li class="kind-card">
      <p class="kind-title">
        <strong title={product}>{TITLES[resource] ?? (plain(product) || resource)}</strong>
      </p>
      {requested === null ? (
        <p class="headline">
          {shown(total)} <span class="quiet">in all</span>
        </p>
      ) : (
        <>
          <p class="headline">
            {shown(free)} <span class="quiet">free of {shown(total)}</span>
          </p>
          <Meter label={`Requested ${resource} ${product}`.trim()} total={total} requested={requested} used={used} closed={closed} text={text} />
        </>
      )}
      <ul class="legend-line">
        {requested !== null && <li class="requested">{shown(requested)} requested</li>}
        {used !== null && <li class="used">{measured(resource, used)} used</li>}
        {closed > 0 && <li class="closed">{shown(closed)} on closed nodes</li>}
      </ul>
      <p class="kind-where">
        {!isPlain && product && `${resource} `}
        {kind.nodes > 0 && `on ${kind.nodes} ${kind.nodes === 1 ? "node" : "nodes"}`}
        {!isPlain && (largestFree ?? 0) > 0 && kind.nodes > 1 && `, at most ${shown(largestFree)} on one`}
      </p>
    </li>
  );
}
