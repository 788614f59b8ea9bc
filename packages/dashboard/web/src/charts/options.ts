// How charts are drawn; all of it is in the address.

export interface ChartOptions {
  isLog: boolean;
  /** Weight of what was before in the moving average, from 0 (none) to below 1. */
  smoothing: number;
  /** Steps where all samples have one; else time. */
  axis: "step" | "time";
}

export const SMOOTHINGS = [0, 0.6, 0.9, 0.97, 0.99];

export function readOptions(query: URLSearchParams): ChartOptions {
  const smoothing = Number(query.get("smooth") ?? 0);
  return {
    isLog: query.get("y") === "log",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    axis: query.get("x") === "time" ? "time" : "step",
  };
}

/** The query with these options, and with all else that is in it. */
export function writeOptions(query: URLSearchParams, { isLog, smoothing, axis }: ChartOptions): string {
  const next = new URLSearchParams(query);
  const set = (name: string, value: string) => (value ? next.set(name, value) : next.delete(name));
  set("y", isLog ? "log" : "");
  set("smooth", smoothing ? String(smoothing) : "");
  set("x", axis === "time" ? "time" : "");
  return next.toString();
}
