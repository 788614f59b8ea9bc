// Small pieces about trainings that have ended or are gone.

import { duration, minute, moment, short } from "../format";
import type { Past } from "../model";
import { Tone } from "../parts";

/** How it ended, and whether it is gone. */
export function Ending({ of }: { of: Pick<Past, "state" | "ended" | "deleted"> }) {
  return (
    <span class="ending">
      {of.ended ? <Tone of={of.state} /> : <Tone of={of.deleted ? "Stopped" : of.state} title={`was ${of.state}`} />}
      {of.deleted && <span class="tag">deleted</span>}
    </span>
  );
}

/** When it ended, or was deleted before. */
export function endOf({ ended, deleted }: Past): string | null {
  return ended ?? deleted;
}

export function Time({ of }: { of: string | null }) {
  return of ? (
    <time dateTime={of} title={moment(of)}>
      {minute(of)}
    </time>
  ) : null;
}

export function took({ seconds }: Past): string {
  return seconds === null ? "" : duration(seconds);
}

/** The last value of the metric that says most. */
export function LastValue({ of: { metric } }: { of: Past }) {
  if (!metric) return null;
  return (
    <span title={metric.name}>
      <span class="quiet">{`${metric.isEval ? "evaluation " : ""}${metric.name}`}</span> {short(Number(metric.value)) || metric.value}
    </span>
  );
}
