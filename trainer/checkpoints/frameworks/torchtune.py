"""Checkpoints of the recipes of torchtune that fine-tune: a restart goes on with the epoch that comes next.

torchtune saves at the end of each epoch but the last: weights or adapters to `epoch_N`, then what else the recipe needs
to `recipe_state/recipe_state.pt`, over the one before. A process that is killed in between leaves the weights of one
epoch beside the state of another. So the former state stays as `recipe_state/epoch_N.pt` until all of an epoch is on
the disk; then a small file among the checkpoints says which files belong together.

A recipe of the user's own, asynchronous checkpoints, and a configuration or command that says itself where to resume
from are left alone.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from trainer.checkpoints import group, newest, saving, settings, store, writable
from trainer.checkpoints.frameworks import mounts, runs

_RECIPES = frozenset(
    f"{method}_finetune_{devices}" for method in ("full", "lora") for devices in ("single_device", "distributed")
)
_CHECKPOINTERS = ("FullModelHFCheckpointer", "FullModelMetaCheckpointer", "FullModelTorchTuneCheckpointer")
_OWN = ("recipe_checkpoint", "adapter_checkpoint", "resume_from_checkpoint", "should_load_recipe_state")
"""Settings of a checkpointer with which a configuration resumes by itself."""
_FILES = "torchtune.json"
_ADAPTER = "adapter_model.pt"
_STATE = Path("recipe_state", "recipe_state.pt")
_SECONDS = 120.0
"""How long ranks wait for each other when they start."""


def attach(module: Any) -> None:
    """Have the recipes go on from their newest checkpoint; `module` has the decorator of their main functions."""
    original = module.parse

    @functools.wraps(original)
    def parse(recipe_main: Callable[[Any], Any]) -> Any:
        if Path(str(recipe_main.__globals__.get("__file__"))).stem in _RECIPES:
            recipe_main = _with_checkpoints(recipe_main)
        return original(recipe_main)

    module.parse = parse


def _with_checkpoints(recipe_main: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(recipe_main)
    def main(config: Any) -> Any:
        try:
            _begin(config, recipe_main.__globals__)
        except Exception as error:
            runs.complain(error)
        return recipe_main(config)

    return main


def _begin(config: Any, names: dict[str, Any]) -> None:
    """Prepare a recipe, before it reads its configuration; `names` are those of its module."""
    kind = _checkpointer(config)
    directory = None if kind is None else runs.next_run()
    if kind is None or directory is None:
        return
    output = Path(config.checkpointer.output_dir).absolute()
    if not (mounts.is_lasting(output) or output in directory.parents):
        try:
            _move(output, directory / "output")
        except OSError as error:
            text = f"{output} goes with the pod, and cannot become a link into {directory}: {error.strerror}"
            settings.complain("output", f"no checkpoints: {text}; set output_dir to a directory that is not there yet")
            return
    run = _Run(config, directory, output)
    run.watch(kind, [each for each in names.values() if "_setup_lr_scheduler" in getattr(each, "__dict__", ())])
    meet = names.get("init_process_group")
    if meet is None:
        run.resume()
        return

    @functools.wraps(meet)
    def then_resume(*given: Any, **options: Any) -> None:
        meet(*given, **options)
        run.resume()  # the recipes read the configuration only now, so all ranks can agree

    names["init_process_group"] = then_resume


def _checkpointer(config: Any) -> Any:
    """The class whose checkpoints are ours to look after; None where the recipe is left alone."""
    says_it = any(word.lstrip("~").startswith("resume_from_checkpoint") for word in sys.argv[1:])
    checkpointer = config.checkpointer
    component = str(checkpointer.get("_component_")).rpartition(".")[2]
    own = says_it or config.get("resume_from_checkpoint") or config.get("enable_async_checkpointing")
    if own or component not in _CHECKPOINTERS or any(checkpointer.get(each) for each in _OWN):
        return None
    return getattr(import_module("torchtune.training"), component)


def _move(output: Path, place: Path) -> None:
    """Have a directory that would go with the pod be one among the checkpoints; all ranks of a node may do it at once.

    Raises:
        OSError: it has files already, or a volume is mounted there.
    """
    place.mkdir(parents=True, exist_ok=True)
    if output.is_symlink() and output.resolve() == place.resolve():
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError, NotADirectoryError):  # another rank was first
        output.rmdir()
    try:
        output.symlink_to(place, target_is_directory=True)
    except FileExistsError:
        if output.resolve() != place.resolve():
            raise


class _Run:
    """One training of a recipe: what it goes on from, and which of its epochs are complete."""

    def __init__(self, config: Any, directory: Path, output: Path) -> None:
        self._config, self._directory, self._output = config, directory, output
        self._recipe: Any = None

    def watch(self, checkpointer: Any, recipes: list[Any]) -> None:
        """Look after each save of a checkpointer, and have recipes count the steps of earlier epochs."""
        save = checkpointer.save_checkpoint

        @functools.wraps(save)
        def save_checkpoint(
            its: Any, state_dict: Any, epoch: int, intermediate_checkpoint: bool = False, *given: Any, **options: Any
        ) -> None:
            has_adapter = "adapter" in state_dict
            _safely(self._spare, its, epoch, not intermediate_checkpoint)
            save(its, state_dict, epoch, intermediate_checkpoint, *given, **options)
            if intermediate_checkpoint:
                _safely(self._conclude, its, epoch, has_adapter)

        checkpointer.save_checkpoint = save_checkpoint
        for recipe in recipes:
            recipe._setup_lr_scheduler = self._counted(recipe._setup_lr_scheduler)  # noqa: SLF001 where they are equal

    def _counted(self, setup: Callable[..., Any]) -> Callable[..., Any]:
        """LoRA on one device begins its schedule anew without `max_steps_per_epoch`, though it goes on elsewhere."""

        @functools.wraps(setup)
        def setup_lr_scheduler(recipe: Any, *given: Any, **options: Any) -> Any:
            self._recipe = recipe
            done = recipe.epochs_run * recipe._steps_per_epoch  # noqa: SLF001 as in the recipes
            if done and not recipe.global_step and "last_epoch" in options:
                recipe.global_step, options["last_epoch"] = done, done - 1
            return setup(recipe, *given, **options)

        return setup_lr_scheduler

    def resume(self) -> None:
        """Change the configuration so that the recipe begins with the epoch after the newest complete one."""
        try:
            found = newest(self._directory)
            files = None if found is None else self._files(found.path)
            if found is None or not self._all_have(files) or files is None:
                return
            settings.say(f"goes on after step {found.step}, with the files of epoch {files['epoch']} in {self._output}")
            self._config.resume_from_checkpoint = True
            checkpointer = self._config.checkpointer
            checkpointer.recipe_checkpoint = files["state"]
            if files["adapter"]:
                checkpointer.adapter_checkpoint = files["adapter"]
            else:
                checkpointer.checkpoint_files = files["weights"]
        except Exception as error:
            runs.complain(error)

    def _files(self, path: Path) -> Any:
        """What belongs to a checkpoint, relative to the output; None where it is not as it was any more."""
        with suppress(OSError, ValueError, KeyError):
            files = json.loads((path / _FILES).read_text(encoding="utf-8"))
            former = self._former(files["epoch"])
            files["state"] = str((former if former.exists() else self._output / _STATE).relative_to(self._output))
            sizes = {files["state"] if name == str(_STATE) else name: size for name, size in files["sizes"].items()}
            is_whole = all((self._output / name).stat().st_size == size for name, size in sizes.items())
            # torchtune would take the adapters of any epoch for those of this training.
            is_mixed = not files["adapter"] and any(self._output.glob(f"epoch_*/{_ADAPTER}"))
            if is_whole and not is_mixed:
                return files
        return None

    def _all_have(self, files: Any) -> bool:
        """Whether all ranks see the files; each says why it begins anew."""
        ours, has_all = group(), files is not None
        if ours is not None:
            seen, missed = map(ours.turn, ("files", "missed-files"))
            if not has_all:
                ours.add(missed, 1)
            ours.add(seen, 1)
            ours.wait(seen, ours.size, lambda: _SECONDS)
            has_all = not ours.add(missed)
        if not has_all:
            settings.say(f"begins anew: files of the last checkpoint are missing or changed in {self._output}")
        return has_all

    def _spare(self, checkpointer: Any, epoch: int, is_last: bool) -> None:
        """Have a save leave alone the state of the former epoch, and write all files of its own."""
        found, state = store.newest(self._directory), self._output / _STATE
        files = None if found is None else self._files(found[1])
        if found is not None and files is not None and not is_last and files["state"] == str(_STATE):
            if shutil.disk_usage(self._output).free > self._needed(files):
                state.rename(self._former(files["epoch"]))
            else:
                settings.say(
                    f"{self._output} has no room for two recipe states: none to go on from until the next is saved"
                )
                shutil.rmtree(found[1])
        # torchtune copies the files beside the model, but not over one that it was killed while it copied.
        source, target = Path(checkpointer._checkpoint_dir), self._output / f"epoch_{epoch}"  # noqa: SLF001
        for path in filter(Path.is_file, source.rglob("*")):
            copy = target / path.relative_to(source)
            if copy.is_file() and copy.stat().st_size != path.stat().st_size:
                copy.unlink()

    def _needed(self, files: Any) -> float:
        """The room that the next epoch takes: as much as the last one, and a little more."""
        written = self._output / f"epoch_{files['epoch']}"
        weights = sum(each.stat().st_size for each in written.rglob("*") if each.is_file())
        return 1.05 * (weights + int(files["sizes"][str(_STATE)]))

    def _former(self, epoch: int) -> Path:
        """Where the state of an epoch is while the next one is being saved."""
        return (self._output / _STATE).with_name(f"epoch_{epoch}.pt")

    def _conclude(self, checkpointer: Any, epoch: int, has_adapter: bool) -> None:
        """Say which files belong together, now that they are complete."""
        if writable() is None:
            return
        step, name = self._recipe.global_step, f"epoch_{epoch}"
        adapter = f"{name}/{_ADAPTER}" if has_adapter else ""
        weights = [] if has_adapter else [*_weights(checkpointer, name)]
        try:
            sizes = {each: (self._output / each).stat().st_size for each in (str(_STATE), adapter, *weights) if each}
            files = {"epoch": epoch, "adapter": adapter, "weights": weights, "sizes": sizes}
            store.sync_tree(self._output / name)
            store.sync_tree((self._output / _STATE).parent)
            with store.begin(self._directory, step) as path:
                (path / _FILES).write_text(json.dumps(files), encoding="utf-8")
        except Exception as error:
            saving.say_failed(step, self._directory, error)
            return
        final = self._directory / store.step_name(step)
        runs.succeeded(step, final)
        store.prune(self._directory, 1, spared=final)
        for former in (self._output / _STATE).parent.glob("epoch_*.pt"):
            former.unlink()


def _weights(checkpointer: Any, name: str) -> Iterator[str]:
    """The files of an epoch with the weights: as many as the checkpointer has read."""
    count = len(checkpointer._checkpoint_paths)  # noqa: SLF001 no public way to it
    suffix = "safetensors" if getattr(checkpointer, "_safe_serialization", False) else "bin"
    return (f"{name}/model-{index:05}-of-{count:05}.{suffix}" for index in range(1, count + 1))


def _safely(function: Callable[..., None], *given: Any) -> None:
    try:
        function(*given)
    except Exception as error:
        runs.complain(error)
