// Which trainings of the history are listed; all of it is in the address.

export interface Filters {
  text: string;
  namespace: string;
  state: string;
  /** Only those that are gone from the cluster. */
  onlyDeleted: boolean;
}

/** States in which trainings end, or are when they are deleted. */
export const STATES = ["Complete", "Failed", "Running", "Suspended", "Pending", "Stalled", "Blocked", "Stopping", "Restarting", "Created"];

export function read(query: URLSearchParams): Filters {
  return {
    text: query.get("q") ?? "",
    namespace: query.get("namespace") ?? "",
    state: query.get("state") ?? "",
    onlyDeleted: query.get("deleted") === "true",
  };
}

/** The query of the page, and of the request. */
export function toQuery({ text, namespace, state, onlyDeleted }: Filters): URLSearchParams {
  const query = new URLSearchParams();
  if (text) query.set("q", text);
  if (namespace) query.set("namespace", namespace);
  if (state) query.set("state", state);
  if (onlyDeleted) query.set("deleted", "true");
  return query;
}

export function write(filters: Filters): string {
  const query = toQuery(filters);
  return query.size > 0 ? `/history?${query}` : "/history";
}
