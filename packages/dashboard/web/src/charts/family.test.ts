import { expect, test } from "vitest";
import { familyOf } from "./family";

test.each([
  ["train", "loss", "loss", "train"],
  ["eval", "loss", "loss", "eval"],
  ["train", "val_loss", "loss", "eval"],
  ["train", "train/loss", "loss", "train"],
  ["eval", "eval_loss", "loss", "eval"],
  ["train", "validation_0-logloss", "logloss", "eval"],
  ["train", "loss_train", "loss", "train"],
  ["train", "Test accuracy", "accuracy", "eval"],
  ["train", "validity", "validity", "train"],
  ["train", "train", "train", "train"],
  ["train", "learning_rate", "learning_rate", "train"],
] as const)("%s %s is %s of %s", (kind, name, quantity, side) => {
  expect(familyOf({ kind, name })).toEqual({ name: quantity, side });
});
