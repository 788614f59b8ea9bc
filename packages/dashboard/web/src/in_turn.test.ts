import { expect, test } from "vitest";
import { inTurn } from "./in_turn";

test("no more is done at once than may be, in order, and a failure holds up nothing", async () => {
  const turn = inTurn(2);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const all = [0, 1, 2, 3].map((number) =>
    turn(() => {
      begun.push(number);
      return new Promise<number>((resolve, reject) => ends.push(number === 0 ? () => reject(new Error("no")) : () => resolve(number)));
    }).catch((error: Error) => error.message),
  );
  expect(begun).toEqual([0, 1]);
  ends[0]!();
  expect(await all[0]).toBe("no");
  expect(begun).toEqual([0, 1, 2]);
  ends[1]!();
  ends[2]!();
  await all[1];
  ends[3]!();
  expect(await Promise.all(all)).toEqual(["no", 1, 2, 3]);
});
