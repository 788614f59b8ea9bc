// Small pieces that several views show.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Row } from "./model";
import { duration } from "./format";
import { type Answer, useAnswer } from "./polling";
import { href, onLink, runtimePath } from "./route";

/** Name the page in the title of its tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** The way from a page to the list that it belongs to. */
export function Back({ to, children }: { to: string; children: ComponentChildren }) {
  return (
    <p class="back">
      <a href={href(to)} onClick={onLink}>
        ← {children}
      </a>
    </p>
  );
}

const TONES: Record<string, string> = {
  Running: "going",
  Complete: "good",
  Succeeded: "good",
  Failed: "bad",
  Blocked: "warn",
  Stalled: "warn",
  Pending: "warn",
  Stopping: "warn",
  Restarting: "warn",
  Suspended: "rest",
};

/** A state in a word; colour only underlines it. */
export function Tone({ of, title }: { of: string; title?: string }) {
  return (
    <span class={`state ${TONES[of] ?? "rest"}`} title={title}>
      {of}
    </span>
  );
}

export function State({ of }: { of: Row }) {
  return <Tone of={of.isDeleted ? "Deleting" : of.state} />;
}

export function RuntimeLink({ of: { runtime, runtimeKind, namespace } }: { of: { runtime: string; runtimeKind: string; namespace: string } }) {
  return (
    <a href={href(runtimePath({ kind: runtimeKind, namespace, name: runtime }))} onClick={onLink}>
      {runtime}
    </a>
  );
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
  if (of.isSuspended) return null;
  if (of.remaining === null) return of.remainingText ? <span>{of.remainingText}</span> : null;
  return <span title={of.remainingText}>{duration(of.remaining)}</span>;
}

export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}

/** All that is wrong; empty texts say that nothing is. */
export function Problems({ of }: { of: readonly string[] }) {
  return (
    <>
      {[...new Set(of)].filter(Boolean).map((each) => (
        <Problem key={each}>{each}</Problem>
      ))}
    </>
  );
}

/** What is good to know about what is shown. */
export function Notes({ of }: { of: readonly string[] }) {
  return (
    <>
      {of.map((each) => (
        <p class="quiet" key={each}>
          {each}
        </p>
      ))}
    </>
  );
}

/** Stands where an answer will, until it has come, and says why it or a newer one cannot. */
export function Loading({ of: { value, problem } }: { of: Answer<unknown> }) {
  return value === null && !problem ? <p role="status">Loading ...</p> : <Problems of={[problem]} />;
}

interface GridProperties {
  label: string;
  titles: readonly string[];
  /** The rows. */
  children: ComponentChildren;
}

/** A table that is as wide as what is in it, and scrolls on narrow screens. */
export function Grid({ label, titles, children }: GridProperties) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="grid">
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
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
  const { value, problem } = useAnswer<{ yaml: string }>(path, version);
  return (
    <section aria-label="YAML">
      <Problems of={[problem]} />
      <pre class="yaml" tabIndex={0} aria-label={`YAML of the ${of}`}>
        {value?.yaml}
      </pre>
    </section>
  );
}
