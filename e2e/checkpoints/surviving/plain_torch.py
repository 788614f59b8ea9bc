"""Plain PyTorch on any number of ranks, with the helper; FAULT=sigkill kills the last rank, FAULT=save hangs."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from record import STEPS, THIRD, Record
from torch.nn.parallel import DistributedDataParallel

from trainer import checkpoints
from trainer.progress.report import report

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
record = Record(rank)
torch.manual_seed(0)
data = torch.randn(STEPS * 4, 8)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.05)


class Slow:
    """A part of the state that never comes to an end of being saved in the first run, from a third on."""

    def state_dict(self):
        if record.is_first and os.environ.get("FAULT") == "save" and record_at >= THIRD:
            print("hangs in a save", flush=True)
            while True:
                signal.pause()
        return {}

    def load_state_dict(self, state):
        pass


state = {"model": model, "optimizer": optimizer, "slow": Slow()}
newest = checkpoints.latest()
if newest:
    newest.load(state)
for record_at in range(newest.step + 1 if newest else 1, STEPS + 1):
    rows = data[(record_at - 1) * 4 : record_at * 4][rank::size]
    loss = model(rows).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach()
    dist.all_reduce(total)
    report(current_step=record_at, total_steps=STEPS)
    record.step(record_at, total.item() / size)
    if record.is_first and os.environ.get("FAULT") == "sigkill" and record_at == THIRD and rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if checkpoints.due(record_at):
        checkpoints.save(state, record_at)
    if checkpoints.ending():
        checkpoints.end()
dist.destroy_process_group()
sys.exit(0)
