// The objects that a TrainJob is built into, with the origin of each field.

import { useEffect, useState } from "preact/hooks";
import { request, trainJobPath } from "../api";
import type { Job } from "../model";
import { Problem } from "../parts";

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
  const [built, setBuilt] = useState<Built | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (isGone) return;
    let isCurrent = true;
    request<Built>("GET", `${trainJobPath(job)}/built`).then(
      (answer) => isCurrent && (setBuilt(answer), setProblem("")),
      (error: Error) => isCurrent && setProblem(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [job.uid, job.generation, isGone]);
  return (
    <section aria-label="Objects">
      <p class="quiet">
        What its runtime, as it is today, and the plugins of this installation make of the TrainJob. Behind each field of
        the templates is where it comes from.
      </p>
      {problem && <Problem>{problem}</Problem>}
      {!built && !problem && <p role="status">Loading ...</p>}
      {built?.notes.map((note) => (
        <p class="quiet" key={note}>
          {note}
        </p>
      ))}
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
