// The objects that a TrainJob is built into, with the origin of each field.

import { trainJobPath } from "../api";
import type { Job } from "../model";
import { Loading, Notes } from "../parts";
import { useAnswer } from "../polling";

interface Built {
  yaml: string;
  notes: string[];
}

const MARK = "  # ";

/** A line of YAML and the comment behind it, which names the origin of the field. */
export function parts(line: string): [text: string, origin: string] {
  const at = line.lastIndexOf(MARK);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + MARK.length)];
}

export function BuiltObjects({ job, isGone }: { job: Job; isGone: boolean }) {
  const answer = useAnswer<Built>(`${trainJobPath(job)}/built`, isGone ? null : `${job.uid} ${job.generation}`);
  const built = answer.value;
  return (
    <section aria-label="Objects">
      <p class="quiet">
        What its runtime, as it is today, and the plugins of this installation make of the TrainJob. Behind each field of
        the templates is where it comes from.
      </p>
      <Loading of={answer} />
      <Notes of={built?.notes ?? []} />
      {built && (
        <pre class="yaml" tabIndex={0} aria-label="Objects of the TrainJob">
          {built.yaml.split("\n").map((line, index) => {
            const [text, origin] = parts(line);
            return (
              <span key={index}>
                {text}
                {origin && <span class="origin">{MARK + origin}</span>}
                {"\n"}
              </span>
            );
          })}
        </pre>
      )}
    </section>
  );
}
