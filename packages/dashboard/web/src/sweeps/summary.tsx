// What a sweep searches, and the best that it has found.

import { useNow } from "../clock";
import { age, duration, short } from "../format";
import { ENDED, type Sweep, type Trial } from "../model";
import { type Fact, Facts } from "../parts";
import { href, onLink, trialCopyPath } from "../route";
import { Command } from "../shell/copy";
import { countsOf } from "./order";
import { labelOf } from "./ranking";
import { TrialLink, useTrialPath } from "./trial_link";

interface SweepFactsProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  /** The command that shows the same in a terminal. */
  command: string;
  /** When it was gone from the cluster. Default: it is there. */
  deleted?: string | null;
}

export function SweepFacts({ sweep, trials, command, deleted }: SweepFactsProperties) {
  const now = useNow();
  const counts = countsOf(trials);
  const ended = trials.length - counts.Running;
  const end = sweep.ended ?? deleted ?? "";
  const isOver = ENDED.has(sweep.state) || end !== "";
  const facts: Fact[] = [
    [
      "Trials",
      <span class="progress">
        <progress value={ended} max={Math.max(sweep.numTrials, 1)} aria-label={`Ended trials of ${sweep.name}`} />
        <span class="of">
          {ended} of {sweep.numTrials}
        </span>
      </span>,
    ],
    ["Objective", `${sweep.direction === "Maximize" ? "maximize" : "minimize"} ${sweep.metric}${sweep.aggregate === "Last" ? "" : `, ${sweep.aggregate === "Min" ? "least" : "greatest"} of a trial`}`],
    ["Algorithm", withSettings(sweep.algorithm, sweep.settings)],
    ["Pruning", sweep.pruning ? withSettings(sweep.pruning, sweep.pruningSettings) : "none"],
    ["At once", String(sweep.parallelTrials)],
    ["Failed at most", sweep.maxFailedTrials === null ? "" : String(sweep.maxFailedTrials)],
    [isOver ? "Took" : "Age", isOver ? duration((Date.parse(end) - Date.parse(sweep.started ?? sweep.created ?? "")) / 1000) : age(sweep.created, now)],
  ];
  return (
    <div class="sweep-facts">
      <Facts of={facts} />
      <Command>{command}</Command>
    </div>
  );
}

const ALGORITHMS: Record<string, string> = { tpe: "TPE", gp: "Gaussian process", cmaEs: "CMA-ES", random: "random", grid: "grid", asha: "ASHA", median: "median" };

function withSettings(name: string, settings: Sweep["settings"]): string {
  return [ALGORITHMS[name] ?? name, ...settings.map(([key, value]) => `${words(key)} ${value}`)].join(", ");
}

function words(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The best trial with its parameters, and what to do with it. */
export function Best({ sweep, best, canCopy }: { sweep: Sweep; best: Trial | null; canCopy: boolean }) {
  const path = useTrialPath();
  const to = best && path(sweep, best);
  return (
    <section class="best-trial" aria-label="Best trial">
      <div>
        <h2>Best trial</h2>
        {best ? (
          <p class="best-value" title={best.valueText}>
            {best.value === null ? best.valueText || "–" : short(best.value)} <span class="quiet">{sweep.metric}</span>
          </p>
        ) : (
          <p class="quiet">No trial has a value yet.</p>
        )}
      </div>
      {best && (
        <div class="best-parameters">
          <p>
            <TrialLink sweep={sweep} trial={best}>
              {labelOf(best)}
            </TrialLink>{" "}
            {best.step !== null && <span class="quiet">step {best.step}</span>}
          </p>
          <dl class="parameters" aria-label="Parameters of the best trial" tabIndex={0}>
            {sweep.parameters.map(({ name }, index) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{best.parameters[index] ?? "–"}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      {best && (
        <div class="actions">
          {to && (
            <a class="button" href={href(to)} onClick={onLink}>
              Open the best trial
            </a>
          )}
          {canCopy && (
            <a class="button primary" href={href(trialCopyPath(sweep, best.number))} onClick={onLink}>
              Train the best again
            </a>
          )}
        </div>
      )}
    </section>
  );
}
