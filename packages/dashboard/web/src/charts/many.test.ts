import { expect, test, vi } from "vitest";
import { EMPTY, received } from "../job/store";
import type { MetricNews, Points } from "../model";
import { EventParser } from "../sse";
import { type Line, axisOf, canBeLogarithmic, extent, tables } from "./curves";
import { hasSample, isZoomed, wholeOf, zoomed } from "./zoom";

// uPlot asks for the density of the screen.
vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined }));
const { default: uPlot } = await import("uplot");

const SAMPLES = 100_000;
const CHUNK = 65_536;

function points(count: number, kind: Points["kind"] = "train"): Points {
  const steps = Array.from({ length: count }, (_, index) => index);
  return { kind, name: "loss", times: steps.map((step) => 1e9 + step), steps, hasSteps: true, values: steps.map((step) => 2 + Math.sin(step)) };
}

const line = (of: Points, id: string): Line => ({ id, label: id, points: of, tone: 0 });

/** An array that counts how often its items are read. */
function counted(items: number[]): { items: number[]; reads: () => number } {
  let count = 0;
  const get = (target: number[], key: string | symbol, receiver: unknown) => {
    if (typeof key === "string" && /^\d/.test(key)) count++;
    return Reflect.get(target, key, receiver) as unknown;
  };
  return { items: new Proxy(items, { get }), reads: () => count };
}

/** How often samples are read until their chart can be drawn. */
function reads(count: number): number {
  const columns = { times: counted(points(count).times), steps: counted(points(count).steps), values: counted(points(count).values) };
  const of = { ...points(0), times: columns.times.items, steps: columns.steps.items, values: columns.values.items };
  const lines = [line(of, "a")];
  expect(axisOf(lines, { axis: "step" }, false)).toBe("step");
  expect(canBeLogarithmic(lines)).toBe(true);
  expect(extent(of.values).greatest).toBeGreaterThan(2.9);
  const [table] = tables(lines, "time", { isLog: true, smoothing: 0.9 });
  expect(table?.map((column) => column.length)).toEqual([count, count, count]);
  const x = table![0];
  const whole = wholeOf(x)!;
  const view = zoomed(whole, whole, "in");
  expect(isZoomed(view, x)).toBe(true);
  expect(hasSample(x, view)).toBe(true);
  return Object.values(columns).reduce((sum, column) => sum + column.reads(), 0);
}

test("100,000 samples are read a few times each, and tenfold samples tenfold as often", () => {
  const all = reads(SAMPLES);
  expect(all).toBeLessThan(8 * SAMPLES);
  expect(all / reads(SAMPLES / 10)).toBeLessThan(11);
});

test("an event with 100,000 samples is put together and read once", () => {
  const news: MetricNews = { isReset: true, hasMore: false, series: [points(SAMPLES), points(SAMPLES, "eval")] };
  const text = `event: metrics\ndata: ${JSON.stringify(news)}\n\n`;
  const parse = vi.spyOn(JSON, "parse");
  const parser = new EventParser();
  const events = [];
  for (let at = 0; at < text.length; at += CHUNK) events.push(...parser.take(text.slice(at, at + CHUNK)));
  expect(parse).toHaveBeenCalledTimes(1);
  expect(events).toHaveLength(1);
  const { curves } = received(EMPTY, events[0]!);
  const next = received({ ...EMPTY, curves }, { name: "metrics", data: { isReset: false, hasMore: false, series: [points(1)] } });
  expect(next.curves.get("train/loss")?.values).toHaveLength(SAMPLES + 1);
  expect(next.curves.get("eval/loss")).toBe(curves.get("eval/loss"));
});

test("eight TrainJobs with 100,000 samples each are one table", () => {
  const lines = Array.from({ length: 8 }, (_, index) => line(points(SAMPLES), String(index)));
  const joined = uPlot.join(tables(lines, "step", { isLog: false, smoothing: 0 }) as uPlot.AlignedData[]);
  expect(joined.map((column) => column.length)).toEqual(Array(9).fill(SAMPLES));
});
