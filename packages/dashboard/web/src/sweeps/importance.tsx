// How much each parameter has to do with the value, as bars.

import { useState } from "preact/hooks";
import type { Importance, Sweep, Trial } from "../model";

/** Bars that are shown at first. */
const FIRST = 8;

const METHODS = {
  share: "Share of the differences between values that a parameter explains (fANOVA).",
  correlation: "Absolute rank correlation with the value, from 0 to 1; parameters that matter only together are not seen.",
};

/** Parameters with what is known of their importance, the most important first. */
export function sortedBars({ of }: Pick<Importance, "of">, parameters: Sweep["parameters"]): [name: string, value: number][] {
  return parameters.flatMap(({ name }): [string, number][] => (Object.hasOwn(of, name) ? [[name, of[name]!]] : [])).sort((a, b) => b[1] - a[1]);
}

export function ImportanceBars({ sweep, importance, trials }: { sweep: Sweep; importance: Importance | null; trials: readonly Trial[] }) {
  const [isOpen, setOpen] = useState(false);
  const bars = importance ? sortedBars(importance, sweep.parameters) : [];
  const shown = isOpen ? bars : bars.slice(0, FIRST);
  const most = Math.max(...bars.map(([, value]) => value), 0);
  const succeeded = trials.filter(({ state }) => state === "Succeeded").length;
  return (
    <section class="importance" aria-labelledby="importance-title">
      <h2 id="importance-title">Importance of parameters</h2>
      {importance?.method && bars.length === 0 ? (
        <p class="nothing">No parameter explains a difference between the values.</p>
      ) : importance?.method ? (
        <>
          <ul>
            {shown.map(([name, value]) => (
              <li key={name} title={name}>
                <span class="name">{name}</span>
                <span class="track" aria-hidden="true">
                  <span class={value === most && most > 0 ? "share most" : "share"} style={{ width: `${100 * value}%` }} />
                </span>
                <span class="figure">{importance.method === "share" ? `${Math.round(100 * value)} %` : value.toFixed(2)}</span>
              </li>
            ))}
          </ul>
          {bars.length > FIRST && (
            <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen ? "Show the first" : `Show all ${bars.length}`}
            </button>
          )}
          <p class="quiet">
            {METHODS[importance.method]} Of {succeeded} succeeded trials{succeeded < 2 * sweep.parameters.length ? ", which are few for so many parameters" : ""}.
          </p>
        </>
      ) : (
        <p class="nothing">{importance ? `Known after ${importance.least} succeeded trials; so far there ${succeeded === 1 ? "is" : "are"} ${succeeded || "none"}.` : "Computing ..."}</p>
      )}
    </section>
  );
}
