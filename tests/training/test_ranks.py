"""Several processes train one network: real ones, as torchrun starts them, by Gloo on the CPU."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import Recipe
from vitnas.cores import Launch
from vitnas.errors import ConfigError, DeviceError
from vitnas.training.final import FinalTraining
from vitnas.training.images import Images
from vitnas.training.plan import make_plan
from vitnas.training.proxy import fresh_model
from vitnas.training.ranks import ALONE, Loss, Ranks, device_of
from vitnas.training.train import train_network

_PATIENCE_S = 300.0
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
_RECIPE = "epochs: 3\nbatch_size: 64\nlr: 0.03\noptimizer: sgd\ntrain_fraction: 0.3\n"
_RECIPE += "ema_decay: 0.9\n"
"""SGD, as AdamW makes steps of full size of the rounding of a gradient that is nothing."""


@given(number=st.integers(4, 70), size=st.integers(1, 4))
def test_the_shares_of_a_step_are_the_step(number: int, size: int) -> None:
    step = torch.arange(number)
    ranks = [Ranks(rank, size) for rank in range(size)]
    shares = [each.share(step) for each in ranks]
    assert torch.equal(torch.cat(shares), step)
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1
    weights = [each.weight(len(share), number) for each, share in zip(ranks, shares, strict=True)]
    assert sum(weights) / size == pytest.approx(1)  # which gradients are averaged with


def test_one_process_is_as_before() -> None:
    values, model = torch.rand(3), nn.Linear(2, 2)
    loss = lambda batch: batch.x.sum()  # noqa: E731
    assert ALONE.sum(values) is values
    assert ALONE.together(loss, model) is loss
    assert ALONE.agree(3)
    assert ALONE.weight(5, 5) == 1
    assert (ALONE.own("epoch"), Ranks(1, 2).own("epoch")) == ("epoch", "epoch of 1")


def test_a_device_for_each_process() -> None:
    two = Launch(1, 2, 1, 2)
    assert device_of("cpu", two) == torch.device("cpu")
    if not torch.cuda.is_available():
        assert device_of("auto", two) == torch.device("cpu")
        with pytest.raises(DeviceError, match="has no CUDA device"):
            device_of("cuda", two)


def test_steps_that_are_too_small_for_all_are_refused(
    tiny_config: ModelConfig, digits: Images
) -> None:
    recipe, model = Recipe(batch_size=6), fresh_model(tiny_config, 0, torch.device("cpu"))
    rule = r"recipe.batch_size = 6: each of 4 processes needs two images .*nearest.* 8"
    with pytest.raises(ConfigError, match=rule):
        FinalTraining(model, recipe, digits, 0, ranks=Apart(0, 4))


class Apart(Ranks):
    """One of several processes, without the others."""

    def together(self, loss: Loss, model: nn.Module) -> Loss:
        return loss


@pytest.fixture
def command(tiny_config: ModelConfig, tmp_path: Path) -> list[str]:
    """A training of three epochs by two processes into `tmp_path/two`."""
    tree = tiny_config.model_dump() | {"drop_path_rate": 0.0}  # each process draws its own
    save_config(ModelConfig.model_validate(tree), tmp_path / "net.yaml")
    (tmp_path / "two.yaml").write_text(_RECIPE)
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"),
        *("-m", "vitnas", "train", str(tmp_path / "net.yaml"), "--device", "cpu"),
        *("--recipe", str(tmp_path / "two.yaml"), "--to", str(tmp_path / "two")),
        *("--formats", "none", "--track", "csv"),
    ]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that torchrun has started, by their rank."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    found: dict[int, int] = {}
    for pid in map(int, listed.stdout.split()):
        settings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        rank = [one.partition(b"=")[2] for one in settings if one.startswith(b"RANK=")]
        found |= {int(number): pid for number in rank}
    return [found[rank] for rank in sorted(found)]


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def log_of(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [{**json.loads(line), "seconds": 0.0} for line in lines]


@pytest.mark.slow
def test_two_processes_are_one_with_half_batches_also_after_a_kill_of_all(
    command: list[str], tmp_path: Path
) -> None:
    process, log = start(command), tmp_path / "two.training" / "log.jsonl"
    wait_until(lambda: log.is_file() or process.poll() is not None)
    for pid in (process.pid, *workers_of(process)):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "two").exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nepoch ") == 2, done.stdout  # of one process
    assert "Warning" not in done.stderr

    (tmp_path / "one.yaml").write_text(_RECIPE + "micro_batch_size: 32\n")
    plan = make_plan(tmp_path / "net.yaml", recipe=tmp_path / "one.yaml")
    train_network(plan, tmp_path / "one", device="cpu")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], atol=1e-5), name
    logs = [log_of(tmp_path / name) for name in ("one", "two")]
    for before, after in zip(*logs, strict=True):
        assert before == pytest.approx(after, rel=1e-4)
    table = (tmp_path / "two.tracking" / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["epoch", "1", "2", "3"]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_process_ends_the_others_with_one_line(
    command: list[str], tmp_path: Path, lost: int
) -> None:
    (tmp_path / "two.yaml").write_text(_RECIPE.replace("epochs: 3", "epochs: 200"))
    process, log = start(command), tmp_path / "two.training" / "log.jsonl"
    wait_until(lambda: log.is_file() or process.poll() is not None)
    os.kill(workers_of(process)[lost], signal.SIGKILL)
    _, said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode
    ours = [line for line in said.splitlines() if line.startswith("vitnas: ")]
    assert len(ours) <= 1, said  # none where torchrun ends the second one before it can tell
    assert lost == 0 or ours, said
    assert all(line.endswith(("resumes it", "resumes where it stopped")) for line in ours)
    assert not (tmp_path / "two").exists()
    assert (tmp_path / "two.training" / "checkpoint.safetensors").is_file()


@pytest.mark.nightly
def test_ray_train_gives_the_weights_of_torchrun(command: list[str], tmp_path: Path) -> None:
    """By the lines of docs/training.md, with two workers on the CPU."""
    process = start(command)
    _, said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, said
    text = _PAGE.read_text()
    (lines,) = re.findall(r"```python\n(from ray.train import .*?)```", text, re.DOTALL)
    ours = {
        'train("sret_t", "/shared/sret_t", data="/shared/imagenet", recipe="sret_t", workers=8)': (
            f"train({str(tmp_path / 'net.yaml')!r}, {str(tmp_path / 'ray')!r}, "
            f"recipe={str(tmp_path / 'two.yaml')!r}, device='cpu', formats=())"
        ),
        "num_workers=8, use_gpu=True": "num_workers=2, use_gpu=False",
    }
    for theirs, mine in ours.items():
        assert theirs in lines
        lines = lines.replace(theirs, mine)
    script = f"import ray\nray.init(num_cpus=3, include_dashboard=False)\n{lines}"
    env = os.environ | {"OMP_NUM_THREADS": "1", "RAY_TRAIN_V2_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=env,
        timeout=_PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    both = [load_file(tmp_path / name / "model.safetensors") for name in ("two", "ray")]
    assert both[0].keys() == both[1].keys()
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])
