"""`trainer.sweep` and what it returns."""

from __future__ import annotations

import base64
import io
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

import trainer
from packages.sweeps.tests.commands.samples import condition, ended, trial
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli import kinds
from trainer.cli.errors import BadInputError, CommandError, GoneError
from trainer.cli.manifests import runtimes
from trainer.kube.objects import Object, labels_of
from trainer.kube.resource import CONFIG_MAPS
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
SPACE: Any = {"lr": trainer.log(1e-4, 0.1), "bs": [16, 32]}


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: FakeClient) -> None:
    """A script, and a cluster with the runtimes that we ship."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch")
    for runtime in runtimes():
        served.add(runtime)


def fit(lr: float, bs: int, epochs: int = 1) -> None:
    """A training."""
    import torch

    torch.save(torch.tensor([lr, bs, epochs]), "result")


def files(served: FakeClient) -> dict[str, str]:
    """The code of the trials."""
    (code,) = served.objects(CONFIG_MAPS)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(code["binaryData"]["code.tar.gz"]))) as archive:
        return {name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]


def test_function(served: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    """The function is called with the parameters of the trial, and with the arguments that all trials have."""
    sweep = trainer.sweep(
        fit, SPACE, arguments={"epochs": 3}, metric="acc", direction="maximize", trials=8, parallel=2, seed=7,
        prune="asha", nodes=2, labels={"team": "vision"}, name="digits",
    )  # fmt: skip

    (made,) = served.objects(OPTIMIZATION_JOBS)
    assert (sweep.name, sweep.namespace, labels_of(made)) == ("digits", "default", {"team": "vision"})
    spec = made["spec"]
    assert spec["objectives"] == [{"metric": "acc", "direction": "Maximize"}]
    assert (spec["numTrials"], spec["parallelTrials"]) == (8, 2)
    assert (spec["searchAlgorithm"], spec["pruneAlgorithm"]) == ({"tpe": {"seed": 7}}, {"asha": {}})
    assert spec["trainJobTemplate"]["metadata"] == {"labels": {"team": "vision"}}
    assert spec["trainJobTemplate"]["spec"]["trainer"]["numNodes"] == 2
    assert files(served)["fit_function.py"].endswith(
        "    fit(epochs=3, "
        "lr=float(__import__(\"os\").environ['KUBEFLOW_TRAINER_OPT_LR']), "
        "bs={'16': 16, '32': 32}[__import__(\"os\").environ['KUBEFLOW_TRAINER_OPT_BS']])\n"
    )
    assert capsys.readouterr() == ("", "")


def test_script(served: FakeClient) -> None:
    """A script gets its parameters as arguments, too."""
    trainer.sweep("train.py", {"lr": "log(1e-4,1e-1)"}, arguments=["--lr", "{lr}"], metric="loss", suspend=True)

    (made,) = served.objects(OPTIMIZATION_JOBS)
    assert made["spec"]["trainJobTemplate"]["spec"]["trainer"]["args"] == ["--lr", "$(KUBEFLOW_TRAINER_OPT_LR)"]
    assert made["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"space": {"lr": SPACE["lr"]}}, "arguments: missing a required argument: 'bs'", id="missing"),
        pytest.param({"space": SPACE | {"x": [1]}}, "got an unexpected keyword argument 'x'", id="unknown"),
        pytest.param({"arguments": {"lr": 1}}, "arguments: lr is a parameter of the sweep as well", id="twice"),
        pytest.param({"arguments": ["--lr"]}, "arguments: must be a dict by name", id="list for a function"),
        pytest.param({"program": "train.py", "arguments": {"lr": 1}}, "arguments: must be a list of texts", id="dict"),
        pytest.param({"program": "train.py", "packages": ["x"]}, "packages: is for functions", id="packages"),
        pytest.param({"direction": "up"}, "direction: up: must be one of minimize, maximize", id="direction"),
        pytest.param({"trials": 0}, "trials: 0: must be from 1 to 100", id="trials"),
        pytest.param({"max_failed": -1}, "max_failed: -1: must be at least 0", id="failed"),
        pytest.param({"space": {"lr": 1}}, "space: lr: must be a list of choices", id="space"),
    ],
)
def test_mistakes(served: FakeClient, options: dict[str, Any], problem: str) -> None:
    """What is wrong is named as Python has it, before anything is sent."""
    given: dict[str, Any] = {"program": fit, "space": SPACE, "metric": "loss"} | options

    with pytest.raises(BadInputError, match=re.escape(problem)):
        trainer.sweep(given.pop("program"), given.pop("space"), **given)

    assert not served.requests_of("create")


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the call says how to install it."""
    monkeypatch.setattr(kinds, "entry_points", lambda group: ())

    with pytest.raises(CommandError, match=r"sweeps are not installed: pip install 'trainer-operator\[sweeps\]'"):
        trainer.sweep(fit, SPACE, metric="loss")


COMPLETE: Object = {
    "state": "Complete",
    "conditions": [condition("Complete")],
    "trials": [ended(1), ended(2, value="0.25"), ended(3, "Failed", None, "no")],
}


def submitted(served: FakeClient, status: Object) -> trainer.SubmittedSweep:
    """A sweep that has come to a status."""
    sweep = trainer.sweep(fit, SPACE, metric="loss", name="digits", trials=4)
    (made,) = served.objects(OPTIMIZATION_JOBS)
    served.add(made | {"status": status})
    running = trial(4, curve=("0.75",))
    running["metadata"]["ownerReferences"][0]["uid"] = made["metadata"]["uid"]
    served.add(running)
    return sweep


def test_results(served: FakeClient) -> None:
    """Trials and the best one are plain values, and waiting for one that is complete returns at once."""
    sweep = submitted(served, COMPLETE)

    status = sweep.wait(timeout=10).status()
    assert (status.state, status.trials, status.running) == ("Complete", 4, 1)
    assert (status.succeeded, status.failed, status.pruned) == (2, 1, 0)
    one, two, three, four = sweep.trials()
    assert (one.value, three.state, three.message, four.value) == (0.5, "Failed", "no", 0.75)
    assert sweep.best() == two
    assert (two.name, two.parameters, two.value) == ("digits-trial-2", {"lr": 0.002, "bs": 16}, 0.25)
    assert repr(sweep) == "SubmittedSweep(name='digits', namespace='default', state='Complete')"


def test_failure(served: FakeClient) -> None:
    """Waiting for a sweep that has failed raises with the reason."""
    sweep = submitted(served, {"conditions": [condition("Failed", message="None of 4 trials has succeeded")]})

    with pytest.raises(trainer.SweepFailedError, match="sweep digits has failed: None of 4 trials has succeeded"):
        sweep.wait()


def test_timeout(served: FakeClient) -> None:
    """Waiting ends after the time, and the sweep goes on."""
    sweep = submitted(served, {"state": "Running"})

    with pytest.raises(TimeoutError, match=r"sweep digits has not ended after 0\.05 s: it is Running"):
        sweep.wait(timeout=0.05)


def test_no_change_after_the_end(served: FakeClient) -> None:
    """What has ended is neither suspended nor resumed, as on the command line."""
    sweep = submitted(served, COMPLETE)

    with pytest.raises(CommandError, match="sweep digits cannot be suspended: it has ended, and is Complete"):
        sweep.suspend()


def test_changes(served: FakeClient) -> None:
    """It is suspended, resumed and deleted; one of the same name that came later is another one."""
    sweep = trainer.sweep(fit, SPACE, metric="loss", name="digits")

    sweep.suspend()
    assert served.objects(OPTIMIZATION_JOBS)[0]["spec"]["suspend"] is True
    sweep.resume()
    assert served.objects(OPTIMIZATION_JOBS)[0]["spec"]["suspend"] is False
    (made,) = served.objects(OPTIMIZATION_JOBS)
    served.add(made | {"status": COMPLETE})
    with pytest.raises(CommandError, match="sweep digits cannot be suspended: it has ended, and is Complete"):
        sweep.suspend()
    sweep.delete()
    assert served.objects(OPTIMIZATION_JOBS) == []
    with pytest.raises(GoneError, match="there is no OptimizationJob digits"):
        sweep.status()
