// How charts are drawn; all of it is in the address.

export interface ChartOptions {
  isLog: boolean;
  /** Weight of what was before in the moving average, from 0 (none) to below 1. */
  smoothing: number;
  /** Steps, else epochs, where all samples have them; else time. */
  axis: "step" | "time";
  /** Names of the charts that come first. */
  pins: string[];
  order: "reported" | "name";
  /** What the names of metrics must have in them. */
  search: string;
}

const MOST_PINS = 50;

export const SMOOTHINGS = [0, 0.6, 0.9, 0.97, 0.99];

/** The options in an address, which has a smoothing other than the usual one alone. */
export function readOptions(query: URLSearchParams, usual = 0): ChartOptions {
  const smoothing = Number(query.get("smooth") ?? usual);
  return {
    isLog: query.get("y") === "log",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    axis: query.get("x") === "time" ? "time" : "step",
    pins: [...new Set(query.getAll("pin"))].slice(0, MOST_PINS),
    order: query.get("order") === "name" ? "name" : "reported",
    search: query.get("metric") ?? "",
  };
}

/** The query with these options, and with all else that is in it. */
export function writeOptions(query: URLSearchParams, { isLog, smoothing, axis, pins, order, search }: ChartOptions, usual = 0): string {
  const next = new URLSearchParams(query);
  const set = (name: string, value: string) => (value ? next.set(name, value) : next.delete(name));
  set("y", isLog ? "log" : "");
  set("smooth", smoothing === usual ? "" : String(smoothing));
  set("x", axis === "time" ? "time" : "");
  set("order", order === "name" ? "name" : "");
  set("metric", search);
  next.delete("pin");
  for (const pin of pins.slice(0, MOST_PINS)) next.append("pin", pin);
  return next.toString();
}
