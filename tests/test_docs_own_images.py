"""docs/own_images.sh makes a network that needs PyTorch alone from a folder of images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

SCRIPT = Path(__file__).resolve().parents[1] / "docs/own_images.sh"
SHAPES = ("disc", "ring", "square")


def draw(shape: str, number: int) -> Image.Image:
    """A shape of 24 to 40 pixels in a random colour at a random place of 64 x 64."""
    random = np.random.default_rng([number, SHAPES.index(shape)])
    ground, ink = (tuple(random.integers(*ends, 3).tolist()) for ends in ((0, 120), (136, 256)))
    side = int(random.integers(24, 41))
    x, y = random.integers(0, 64 - side, 2).tolist()
    image = Image.new("RGB", (64, 64), ground)
    pen, box = ImageDraw.Draw(image), (x, y, x + side, y + side)
    if shape == "square":
        pen.rectangle(box, fill=ink)
    elif shape == "disc":
        pen.ellipse(box, fill=ink)
    else:
        pen.ellipse(box, outline=ink, width=6)
    return image


def write_images(root: Path, per_class: dict[str, int]) -> None:
    for part, count in per_class.items():
        for shape in SHAPES:
            folder = root / part / shape
            folder.mkdir(parents=True)
            for number in range(count):
                draw(shape, number + 1000 * (part == "test")).save(folder / f"{number}.png")


def run(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    changes = {
        "PATH": path,
        "XDG_CACHE_HOME": str(cache),
        # The long training has a thread for each core. Where other tests have the cores, threads
        # that wait for each other keep them busy for minutes; these sleep.
        "OMP_WAIT_POLICY": "passive",
    }
    command = ["bash", str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "is_repeated"),
    [
        pytest.param({"train": 40, "test": 4}, False, id="test"),
        pytest.param({"train": 40}, True, id="train, twice", marks=pytest.mark.nightly),
    ],
)
def test_a_folder_of_images_becomes_a_network_that_runs_alone(
    parts: dict[str, int], is_repeated: bool, tmp_path: Path
) -> None:
    write_images(tmp_path / "my images", parts)
    work, short = tmp_path / "work", ("--trials", "2", "--backend", "serial", "--no-baselines")
    asked = (str(tmp_path / "my images"), str(work), *short)
    done = run(*asked, cache=tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^== (\d)\.", done.stdout, flags=re.MULTILINE) == list("123456")
    assert {file.name for file in (work / "network").iterdir()} >= {"model.py", "model.onnx"}
    scored = re.search(r"top-1 +([\d.]+) %", done.stdout.partition("== 5.")[2])
    assert scored is not None
    assert float(scored[1]) > 50, "three shapes; a guess has 33 %"
    alone = done.stdout.partition("== 6.")[2]
    assert set(re.findall(r"% +(\w+)", alone)) == set(SHAPES)
    if not is_repeated:
        return
    made = (work / "network/model.safetensors").stat().st_mtime_ns
    again = run(*asked, cache=tmp_path / "cache")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.partition("== 6.")[2] == alone
    assert (work / "network/model.safetensors").stat().st_mtime_ns == made


@pytest.mark.parametrize("asked", [(), ("here",), ("here", "work")])
def test_a_wrong_call_is_one_line(asked: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*asked, cache=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_the_long_training_has_no_more_threads_than_it_may_have_cores() -> None:
    """In a container or a batch job the machine has more; threads on one core wait for another."""
    (line,) = re.findall(r"^cores=.*$", SCRIPT.read_text(), flags=re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    limited = (
        "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); "
        "os.execvp(sys.argv[2], sys.argv[2:])"
    )
    command = [sys.executable, "-c", limited, str(min(os.sched_getaffinity(0)))]
    done = subprocess.run(
        [*command, "bash", "-c", f"{line}; echo $cores"],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
