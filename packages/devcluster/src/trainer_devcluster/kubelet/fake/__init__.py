"""A kubelet without processes: for trying out what happens to thousands of pods on a laptop."""

from trainer_devcluster.kubelet.fake.kubelet import FakeKubelet, register

__all__ = ["FakeKubelet", "register"]
