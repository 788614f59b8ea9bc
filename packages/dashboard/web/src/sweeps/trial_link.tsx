// The way to a trial: its TrainJob on the cluster, or what the history has of it.

import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { write } from "../history/filters";
import { HasHistory } from "../history/store";
import type { Sweep, Trial } from "../model";
import { href, jobPath, onLink, pastPath } from "../route";

type Of = Pick<Sweep, "namespace">;

/** The path of a trial; null where nothing of it can be shown. */
export function trialPath({ namespace }: Of, { name, uid, isThere }: Pick<Trial, "name" | "uid" | "isThere">, hasHistory: boolean): string | null {
  if (isThere) return jobPath(namespace, name);
  if (!hasHistory) return null;
  return uid ? pastPath({ namespace, name, uid }) : write({ text: name, namespace, state: "", onlyDeleted: false });
}

export function useTrialPath(): (sweep: Of, trial: Trial) => string | null {
  const hasHistory = useContext(HasHistory);
  return (sweep, trial) => trialPath(sweep, trial, hasHistory);
}

export function TrialLink({ sweep, trial, children }: { sweep: Of; trial: Trial; children: ComponentChildren }) {
  const path = useTrialPath()(sweep, trial);
  if (!path) return <span title={`${trial.name} was deleted`}>{children}</span>;
  return (
    <a href={href(path)} onClick={onLink} title={trial.name}>
      {children}
    </a>
  );
}
