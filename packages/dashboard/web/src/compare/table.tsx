// What differs between trainings, and what came out of it: a training in a row.

import type { ComponentChildren } from "preact";
import { duration, moment, short } from "../format";
import { Ending, endOf } from "../history/parts";
import { Progress, State } from "../parts";
import { href, onLink } from "../route";
import type { Field } from "./fields";
import type { Highlight } from "../charts/pointer";
import { pointing, standing } from "./highlight";
import { type Metric, STATISTICS, type Statistic, bestOf } from "./results";
import type { Training } from "./training";
import type { CompareView } from "./view";

interface TableProperties {
  trainings: readonly Training[];
  /** The places of those that are shown among them, in their order. */
  order: readonly number[];
  fields: readonly Field[];
  metrics: readonly Metric[];
  view: Pick<CompareView, "sort" | "isReversed" | "statistic">;
  highlight: Highlight;
  onSort(key: string): void;
  onRemove(id: string): void;
}

export function CompareTable({ trainings, order, fields, metrics, view, highlight, onSort, onRemove }: TableProperties) {
  const shown = new Set(order);
  const best = metrics.map((metric) => bestOf(metric, view.statistic, (index) => shown.has(index)));
  const hasTime = trainings.some(({ seconds }) => seconds !== null);
  const head = (key: string, children: ComponentChildren, kind = "") => (
    <Head key={key} name={key} view={view} kind={kind} onSort={onSort}>
      {children}
    </Head>
  );
  return (
    <div class="scroll compare-table" tabIndex={0} role="region" aria-label="Parameters and results">
      <table>
        <thead>
          {(fields.length > 0 || metrics.length > 0) && (
            <tr class="groups">
              <td />
              {metrics.length + Number(hasTime) > 0 && <th colSpan={metrics.length + Number(hasTime)}>Results</th>}
              {fields.length > 0 && <th colSpan={fields.length}>What differs</th>}
              <td />
            </tr>
          )}
          <tr>
            {head("name", "Training", "first")}
            {metrics.map(({ key, title, isEval }, index) =>
              head(
                key,
                <>
                  {title}
                  {isEval && <span class="tag">evaluation</span>}
                </>,
                index === 0 ? "number opens" : "number",
              ),
            )}
            {hasTime && head("took", "Took", "number")}
            {fields.map(({ key, title }, index) => head(key, title, index === 0 ? "opens" : ""))}
            <td />
          </tr>
        </thead>
        <tbody>
          {order.map((index) => {
            const training = trainings[index]!;
            const { id, label, seconds } = training;
            return (
              <tr key={id} class={standing(highlight, label)} {...pointing(highlight, label)}>
                <Name of={training} />
                {metrics.map((metric, place) => (
                  <Cell key={metric.key} metric={metric} index={index} statistic={view.statistic} best={best[place] ?? null} isFirst={place === 0} />
                ))}
                {hasTime && <td class="number">{seconds === null ? "" : duration(seconds)}</td>}
                {fields.map((field, place) => (
                  <Value key={field.key} of={field.values[index] ?? null} isKnown={training.recipe !== null} isFirst={place === 0} />
                ))}
                <td>
                  <button type="button" class="remove" aria-label={`Remove ${label}`} title={`Remove ${label}`} onClick={() => onRemove(id)}>
                    ×
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface HeadProperties {
  name: string;
  view: Pick<CompareView, "sort" | "isReversed">;
  kind: string;
  children: ComponentChildren;
  onSort(key: string): void;
}

function Head({ name, view, kind, children, onSort }: HeadProperties) {
  const isSorted = view.sort === name;
  return (
    <th scope="col" class={kind} aria-sort={isSorted ? (view.isReversed ? "descending" : "ascending") : undefined}>
      <button type="button" onClick={() => onSort(name)}>
        <span class="heading">{children}</span>
        <span class="arrow" aria-hidden="true">
          {isSorted ? (view.isReversed ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

function Name({ of: { namespace, label, path, tone, row, past, trouble, isGone } }: { of: Training }) {
  return (
    <th scope="row" class={`first tone-${tone}`}>
      <span class="name">
        <span class="swatch" aria-hidden="true" />
        <a href={href(path)} onClick={onLink} title={`${namespace}/${label}`}>
          {label}
        </a>
      </span>
      <span class="state-line">
        {row && !isGone && <State of={row} />}
        {row && !isGone && row.state === "Running" && <Progress of={row} />}
        {isGone && <span class="quiet">{row ? "was deleted" : "does not exist"}</span>}
        {past && <Ending of={past} />}
        {past && (
          <span class="quiet" title={moment(endOf(past))}>
            of the history
          </span>
        )}
        {trouble && <span class="quiet">{trouble}</span>}
      </span>
    </th>
  );
}

function Value({ of, isKnown, isFirst }: { of: string | null; isKnown: boolean; isFirst: boolean }) {
  return (
    <td class={isFirst ? "value opens" : "value"} title={of ?? undefined}>
      {of ?? <span class="quiet">{isKnown ? "–" : ""}</span>}
    </td>
  );
}

interface CellProperties {
  metric: Metric;
  index: number;
  statistic: Statistic;
  best: number | null;
  isFirst: boolean;
}

function Cell({ metric: { values }, index, statistic, best, isFirst }: CellProperties) {
  const result = values[index];
  const kind = isFirst ? "number result opens" : "number result";
  if (!result) return <td class={kind} />;
  const isBest = best !== null && result[statistic] === best;
  const others = STATISTICS.filter((each) => each !== statistic);
  return (
    <td class={kind}>
      <span class={isBest ? "main best" : "main"}>
        {isBest && <span class="mark">best</span>}
        {shown(result[statistic])}
      </span>
      <span class="others">
        {others.map((each) => (
          <span key={each}>
            {each} {shown(result[each])}
          </span>
        ))}
      </span>
    </td>
  );
}

function shown(value: number): string {
  return short(value) || String(value);
}
