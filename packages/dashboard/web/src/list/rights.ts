// What the user may do to TrainJobs of the namespaces that something is selected in.

import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api";
import type { Rights } from "../model";
import type { KnownRights } from "./bulk";

/** Most namespaces that are asked about; in others the API server decides when something is done. */
const ASKED = 20;

/** The rights in namespaces, each asked about once; `forget` has them asked about again. */
export function useRights(namespaces: readonly string[]): { rights: KnownRights; forget(): void } {
  const [rights, setRights] = useState<KnownRights>(new Map());
  const asked = useRef(new Set<string>());
  useEffect(() => {
    for (const namespace of namespaces) {
      if (asked.current.has(namespace)) continue;
      asked.current.add(namespace);
      const known = (of: Rights | null) => setRights((before) => new Map(before).set(namespace, of));
      if (asked.current.size > ASKED) known(null);
      else request<Rights>("GET", `/api/rights/${encodeURIComponent(namespace)}`).then(known, () => known(null));
    }
  });
  const forget = () => {
    asked.current.clear();
    setRights(new Map());
  };
  return { rights, forget };
}
