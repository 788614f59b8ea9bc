"""The first module of the reporter, `trainer_reporter` in the container: it waits for frameworks to be imported.

Python runs it before `site` and `warnings` are there, in every process of the container. So it imports nothing but
`sys`, leaves alone what it does not understand, and is written for every version of Python: one that could not read it
could import `warnings` no more. `trainer.progress.injection` has the reasons for this way.
"""

import sys

PACKAGE = "trainer.progress.injection"
SOURCES = {
    "transformers.trainer": "hooks.watch_transformers",
    "lightning.pytorch.trainer.trainer": "hooks.watch_lightning",
    "pytorch_lightning.trainer.trainer": "hooks.watch_lightning",
    "keras.src.callbacks.callback_list": "hooks.watch_keras",
    "tf_keras.src.callbacks": "hooks.watch_keras",
    "xgboost.training": "hooks.watch_xgboost",
    "torchtune.config._parse": "hooks.watch_torchtune",
    "tqdm.std": "hooks.watch_tqdm",
    "argparse": "parameters.watch_argparse",
    "torch.distributed.launcher.api": "torchrun.watch",
    "accelerate.commands.launch": "torchrun.watch_accelerate",
}
"""Functions of other modules of the package, by the module that they change once it is imported."""


class Never(Warning):
    """The category that the filter names; nobody issues it."""


class Watcher(object):  # noqa: UP004 Python 2 reads it, too
    """A finder that finds nothing, but is asked about each module: it lets the others find those of `SOURCES`."""

    def find_spec(self, name, path=None, target=None):
        """Find one of the modules with the finders of this Python, and have its hook called after its import."""
        _hide_filter()
        if name not in SOURCES:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                _call_after(spec.loader, name)
                return spec
        return None


def _call_after(loader, name):
    """Replace a method of this one loader: all else of it stays what the framework expects."""
    try:
        execute = loader.exec_module
    except AttributeError:
        return

    def exec_module(module):
        execute(module)
        if module.__name__ != name:  # the loader of an archive is one for many modules
            return
        try:
            place, _, function = SOURCES[name].partition(".")
            hooks = __import__(PACKAGE + "." + place, None, None, [place])  # as late as possible
            getattr(hooks, function)(module)
        except Exception as error:
            complain(error)

    try:
        loader.exec_module = exec_module
    except Exception as error:
        complain(error)


_complained = []  # type: list[bool]


def complain(error, what="no progress is reported"):
    """Say on stderr what this training does without, once in each process."""
    if not _complained:
        _complained.append(True)
        try:  # noqa: SIM105 without imports
            sys.stderr.write("trainer: %s for this training: %.200r\n" % (what, error))  # noqa: UP031
        except Exception:  # noqa: S110 there is no stderr
            pass


def _hide_filter():
    """Take the filter out of what programs look at to see whether somebody asked for warnings."""
    sys.warnoptions[:] = [each for each in sys.warnoptions if "trainer_reporter" not in each]


if sys.version_info >= (3, 8):  # noqa: UP036 that of the training
    sys.meta_path.insert(0, Watcher())
