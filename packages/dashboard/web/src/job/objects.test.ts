import { expect, test } from "vitest";
import { parts } from "./objects";

test.each([
  ["  image: a  # TrainJob spec.trainer.image", ["  image: a", "TrainJob spec.trainer.image"]],
  ["  value: 'a  # b'  # runtime", ["  value: 'a  # b'", "runtime"]],
  ["  image: a", ["  image: a", ""]],
])("%s", (line, expected) => {
  expect(parts(line)).toEqual(expected);
});
