"""The pictures of the documentation: `make pictures` trains on a dev cluster, and a browser looks at its page.

What is trained is made up: the script below draws curves that look like those of its model, and asks for GPUs that the
dev cluster only counts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs" / "images"
NAMESPACES: Final = ("vision", "language", "speech")
DEADLINE_SECONDS: Final = 240.0
SETTLE_MILLISECONDS: Final = 4000

SCRIPT: Final = """
import argparse, math, os, random, sys, time

from report import report

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--optimizer", default="adamw")
parser.add_argument("--steps", type=int, default=1000)
args = parser.parse_args()

until = int(os.environ.get("UNTIL", 0))
noise = random.Random(f"{args.model} {args.lr} {args.batch_size}")
best = 0.35 + abs(math.log10(args.lr / 3e-4)) * 0.4 + abs(math.log2(args.batch_size / 32)) * 0.05
best += 0.2 * (args.optimizer == "sgd")
print(f"loaded 208,000 examples: {args.steps} steps of {args.batch_size}")
for step in range(10, (until or args.steps) + 1, 10):
    share = step / args.steps
    loss = best + 2.1 * math.exp(-6 * share) + noise.gauss(0, 0.06) * (1 - 0.5 * share)
    accuracy = 0.93 - best * 0.18 - 0.55 * math.exp(-5 * share) + noise.gauss(0, 0.006)
    rate = args.lr * min(1, share * 20) * 0.5 * (1 + math.cos(math.pi * share))
    metrics = {"loss": round(loss, 4), "lr": rate, "tokens_per_s": round(11_800 + noise.gauss(0, 240))}
    print(f"step {step}/{args.steps} loss={loss:.4f} lr={rate:.2e}", file=sys.stderr if step % 400 == 0 else sys.stdout)
    report(
        current_step=step,
        total_steps=args.steps,
        estimated_remaining_seconds=int((args.steps - step) * 1.9),
        train_metrics=metrics,
        eval_metrics={"eval_loss": round(loss * 1.05, 4), "accuracy": round(accuracy, 4)} if step % 50 == 0 else None,
        force=True,
    )
    time.sleep(0.2)
    if "FAIL" in os.environ and share > 0.3:
        shape = f"({args.batch_size}x1024 and 768x1024)"
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied {shape}")
if until:
    time.sleep(3600)
"""
"""A training that takes seconds, waits at the step `UNTIL`, or fails where there is `FAIL`."""

TRAININGS: Final = (
    # name, options of `trainer run`, arguments of the script
    ("resnet50-lr-1", "-n vision --nodes 2", "--model resnet50 --lr 1e-3"),
    ("resnet50-lr-2", "-n vision --nodes 2", "--model resnet50 --lr 3e-4"),
    ("resnet50-lr-3", "-n vision --nodes 2", "--model resnet50 --lr 1e-4"),
    ("bert-base-sst2", "-n language", "--model bert-base --lr 2e-4"),
    ("whisper-small-de", "-n speech --env FAIL=1", "--model whisper-small --lr 1e-4 --batch-size 16"),
    ("llama3-8b-lora", "-n language --nodes 2 --gpus 2 --env UNTIL=620", "--model llama-3-8b --lr 2e-4 --batch-size 8"),
    ("vit-b16-imagenet", "-n vision --gpus 2 --env UNTIL=340", "--model vit-b16 --lr 5e-4"),
    ("gpt2-medium", "-n language --nodes 2 --gpus 8", "--model gpt2-medium"),
    ("t5-small-summaries", "-n language --suspend", "--model t5-small"),
)
ENDS: Final = {"resnet50-lr-1", "resnet50-lr-2", "resnet50-lr-3", "bert-base-sst2", "whisper-small-de"}
DELETED: Final = "bert-base-sst2"
"""It ends, and is deleted: the past shows it."""
SWEEP: Final = (
    *("--name", "vit-b16-search", "--namespace", "vision", "--runtime", "plain", "--seed", "2"),
    *("--param", "lr=log(1e-5,1e-2)", "--param", "batch_size=choice(16,32,64,128)"),
    *("--param", "optimizer=choice(adamw,lion,sgd)", "--minimize", "eval_loss", "--trials", "20", "--parallel", "4"),
    *("--prune", "median", "--warmup", "50", "--", "--model", "vit-b16", "--steps", "400"),
    *("--lr", "{lr}", "--batch-size", "{batch_size}", "--optimizer", "{optimizer}"),
)
"""Options of `trainer sweep`, and the arguments of the script."""

PAGES: Final = {
    "list": "/",
    "job": "/jobs/language/llama3-8b-lora",
    "explanation": "/jobs/speech/whisper-small-de",
    "compare": "/compare?job=vision/resnet50-lr-1&job=vision/resnet50-lr-2&job=vision/resnet50-lr-3",
    "logs": "/jobs/language/llama3-8b-lora/logs",
    "objects": "/jobs/language/llama3-8b-lora/objects",
    "clone": "/new/vision/vit-b16-imagenet",
    "sweep": "/sweeps/vision/vit-b16-search",
    "history": "/history",
    "runtimes": "/runtimes",
    "cluster": "/cluster",
}


def main() -> int:
    """Take all pictures."""
    with tempfile.TemporaryDirectory(prefix="trainer-pictures-") as directory:
        trainer = Trainer(Path(directory))
        with trainer.cluster(), trainer.dashboard() as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            train(trainer)
            take_pictures(browser.new_page(viewport={"width": 1280, "height": 900}), address)
    return 0


class Trainer:
    """The command, with a state directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._program = str(Path(sys.executable).with_name("trainer"))
        self._environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        self._environment["XDG_STATE_HOME"] = str(directory)
        self.kubeconfig = directory / "trainer" / "kubeconfig"
        self.script = directory / "train.py"
        self.script.write_text(SCRIPT)

    def __call__(self, *arguments: str) -> str:
        """What the command prints. Raises `CalledProcessError`."""
        command = [self._program, *arguments]
        return subprocess.run(command, env=self._environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    @contextmanager
    def cluster(self) -> Iterator[None]:
        """A dev cluster with a node of eight GPUs, which are only counted."""
        self("up", "--node-resources", "cpu=64,memory=512Gi,nvidia.com/gpu=8")
        try:
            for namespace in NAMESPACES:
                create = ["kubectl", "create", "namespace", namespace, "--kubeconfig", str(self.kubeconfig)]
                subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
            yield
        finally:
            self("down", "--delete", "--yes")

    @contextmanager
    def dashboard(self) -> Iterator[str]:
        """The address of the dashboard, with its token."""
        command = [self._program, "dashboard", "--no-browser"]
        # The commands that the page shows then do without the path of the kubeconfig.
        environment = self._environment | {"KUBECONFIG": str(self.kubeconfig)}
        with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                yield next(line.split()[-1] for line in process.stdout if line.startswith("dashboard: "))
            finally:
                process.terminate()


def train(trainer: Trainer) -> None:
    """Submit all, and wait until each is in the state that its picture shows."""
    for name, options, arguments in TRAININGS:
        run = ["run", str(trainer.script), "--name", name, "--no-follow", "--runtime", "torch-distributed"]
        trainer(*run, *options.split(), "--", *arguments.split())
    wait_until(trainer, lambda states: all(states[name] in {"Complete", "Failed"} for name in ENDS))
    wait_until(trainer, lambda states: states["llama3-8b-lora"] == "Running")
    trainer("delete", DELETED, "-n", "language")
    trainer("sweep", str(trainer.script), *SWEEP)


def wait_until(trainer: Trainer, holds: Callable[[Mapping[str, str]], bool]) -> None:
    """Wait until the states of the trainings are as wanted. Raises `TimeoutError`."""
    end = time.monotonic() + DEADLINE_SECONDS
    while True:
        found = json.loads(trainer("get", "--all-namespaces", "-o", "json"))["items"]
        states = {each["metadata"]["name"]: (each.get("status") or {}).get("state", "Created") for each in found}
        if holds(states):
            return
        if time.monotonic() > end:
            raise TimeoutError(f"after {DEADLINE_SECONDS:.0f} s the trainings are {states}")
        time.sleep(1)


def take_pictures(page: Page, address: str) -> None:
    """Open each page, and keep what it shows."""
    base, token = address.rstrip("/").split("/#")
    for name, path in PAGES.items():
        page.goto("about:blank")  # a new document: an address that differs by its fragment alone loads none
        page.goto(f"{base}{path}#{token}")
        shoot(page, name)
        if name == "sweep":
            page.get_by_role("slider", name="Keep a part of optimizer").press("ArrowUp")
            heading = page.get_by_role("heading", name="Trials")
            heading.evaluate("heading => scrollTo(0, heading.getBoundingClientRect().top + scrollY - 70)")
            shoot(page, "sweep-trials")
        if name == "history":
            page.get_by_role("link", name=DELETED).click()
            shoot(page, "past")


def shoot(page: Page, name: str) -> None:
    """Wait until the page has drawn what it has asked for, and keep the picture."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    page.screenshot(path=IMAGES / f"dashboard-{name}.png")
    sys.stdout.write(f"docs/images/dashboard-{name}.png\n")


if __name__ == "__main__":
    raise SystemExit(main())
