// Small pieces that several views show.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { request } from "./api";
import type { Row } from "./model";
import { duration } from "./format";

const TONES: Record<string, string> = {
  Running: "going",
  Complete: "good",
  Failed: "bad",
  Blocked: "warn",
  Stalled: "warn",
  Pending: "warn",
  Restarting: "warn",
  Suspended: "rest",
};

/** The state in a word; colour only underlines it. */
export function State({ of }: { of: Row }) {
  const word = of.isDeleted ? "Deleting" : of.state;
  return <span class={`state ${TONES[word] ?? "rest"}`}>{word}</span>;
}

export function Progress({ of }: { of: Row }) {
  if (of.progress === null) return null;
  return (
    <span class="progress">
      <progress value={of.progress} max={100} aria-label={`Progress of ${of.name}`} />
      <span>{of.progress} %</span>
    </span>
  );
}

export function Remaining({ of }: { of: Row }) {
  if (of.remaining === null || of.isSuspended) return null;
  return <span title={of.remainingText}>{duration(of.remaining)}</span>;
}

export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}

export type Fact = [title: string, value: ComponentChildren];

/** Facts about an object; those without a value are left out. */
export function Facts({ of }: { of: Fact[] }) {
  return (
    <dl class="facts">
      {of
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

/** The YAML of an object, read again when its version changes; null keeps what is shown of an object that is gone. */
export function Yaml({ path, version, of }: { path: string; version: string | null; of: string }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (version === null) return;
    let isCurrent = true;
    request<{ yaml: string }>("GET", path).then(
      ({ yaml }) => isCurrent && (setText(yaml), setProblem("")),
      (error: Error) => isCurrent && setProblem(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [path, version]);
  return (
    <section aria-label="YAML">
      {problem && <Problem>{problem}</Problem>}
      <pre class="yaml" tabIndex={0} aria-label={`YAML of the ${of}`}>
        {text}
      </pre>
    </section>
  );
}
