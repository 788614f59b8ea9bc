import { expect, test } from "vitest";
import { tableCsv } from "./csv";
import type { Training } from "./training";

test("the table has a training in a row, in its order, and no cell that a spreadsheet would compute", () => {
  const trainings = [
    { namespace: "a", name: "b", row: { state: "Running" }, past: null, seconds: null },
    { namespace: "a", name: "c", row: null, past: { state: "Complete" }, seconds: 60 },
  ] as unknown as Training[];
  const metric = { key: "me:loss", title: "loss", isEval: true, better: null, values: [null, { last: 2, min: -1e-7, max: 3 }] };
  const field = { key: "p:lr", title: "lr", values: ["=1+1", "1,5"] };
  expect(tableCsv(trainings, [1, 0], [metric], [field]).split("\n")).toEqual([
    "namespace,name,state,seconds,evaluation loss last,evaluation loss min,evaluation loss max,lr",
    'a,c,Complete,60,2,-1e-7,3,"1,5"',
    "a,b,Running,,,,,'=1+1",
    "",
  ]);
});
