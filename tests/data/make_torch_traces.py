"""Record the captures of PyTorch's profiler in this directory anew (needs torch): python tests/data/make_torch_traces.py"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

STEPS = 12


class SlowRows(Dataset):
    """Rows that take 2 ms each to make."""

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.002)
        return torch.full((64,), index / 1000), index % 10


def loader_in_process() -> None:
    """The DataLoader works in the training process: each step waits for 8 rows."""
    record("torch-input-bound", DataLoader(SlowRows(), batch_size=8, num_workers=0), keep=False)


def kept_graphs() -> None:
    """Each step evaluates without `no_grad` and keeps the loss, and with it the activations that it came from."""
    rows = torch.randn(512, 64), torch.zeros(512, dtype=torch.long)
    record("torch-memory-growth", [rows] * STEPS, keep=True)


def record(name: str, batches: Iterable[tuple[torch.Tensor, torch.Tensor]], *, keep: bool) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=STEPS - 2), profile_memory=True) as profiler:
        for _, (x, y) in zip(range(STEPS), batches, strict=False):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if keep:
                kept.append(nn.functional.cross_entropy(model(x), y))
            profiler.step()
    save(profiler, Path(name))


def save(profiler: profile, directory: Path) -> None:
    """As tensorboard_trace_handler does, under a name without the machine's and the time."""
    directory.mkdir(exist_ok=True)
    trace = directory / "host.1.pt.trace.json"
    profiler.export_chrome_trace(str(trace))
    trace.with_name(f"{trace.name}.gz").write_bytes(gzip.compress(trace.read_bytes(), mtime=0))
    trace.unlink()


if __name__ == "__main__":
    os.chdir(Path(__file__).parent)
    loader_in_process()
    kept_graphs()
