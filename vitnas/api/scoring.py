"""Trained networks: how well they score, where they will run, what they see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.api.runs import folder_of
from vitnas.config.data import DataConfig
from vitnas.config.data_names import read_data
from vitnas.errors import ConfigError, nearest_name

if TYPE_CHECKING:
    from vitnas.deploy.result import DeployCheck
    from vitnas.run import Run
    from vitnas.scoring.data import Part
    from vitnas.scoring.evaluate import Evaluation
    from vitnas.scoring.predict import Prediction


def evaluate(
    model: str | Path,
    data: str | DataConfig,
    *,
    score_on: str = "test",
    weights: str | None = None,
    batch_sizes: Sequence[int] = (),
    device: str = "auto",
) -> Evaluation:
    """Score a trained network on labelled images; see `docs/evaluate.md`.

    On the CPU it takes as many threads as `torch.set_num_threads` says.

    Args:
        model: a folder that vitnas wrote, a .onnx or .pt2 file, or a timm model's name.
        data: a data set's name, `name:folder`, a folder of images by class, or a space file.
        score_on: `test` or `val`: the test images, or those that score candidates.
        weights: of a name, a safetensors file; None: timm's own.
        batch_sizes: for each, the images a second are measured.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.

    Raises:
        VitnasError: network and images do not fit together, or one of them cannot be read.
    """
    part = _part(score_on)
    config = data if isinstance(data, DataConfig) else read_data(data)
    from vitnas.scoring import evaluate as scoring

    options: dict[str, Any] = {"weights": weights, "batch_sizes": batch_sizes, "device": device}
    return scoring.evaluate(str(model), config, part, **options)


def deploy_check(
    subject: Run | str | Path,
    data: str | DataConfig | None = None,
    *,
    score_on: str = "test",
    trials: Sequence[int] = (),
    notice: Callable[[str], None] = lambda line: None,
) -> DeployCheck:
    """Measure where networks will run: onnxruntime, int8, fp16, delegates; see `docs/deploy.md`.

    Args:
        subject: an exported folder, or a run or its folder: then all networks of its front.
        data: a data set's name, `name:folder`, a folder of images by class, or a space file; of a
            run its own.
        score_on: `test` or `val`: the test images, or those that score candidates.
        trials: of a run, these in place of its front.
        notice: called with a line before each network.

    Raises:
        VitnasError: onnxruntime is missing, or network, weights or images cannot be used.
    """
    part = _part(score_on)
    config = read_data(data) if isinstance(data, str) else data
    from vitnas.deploy import check

    return check.deploy_check(folder_of(subject), config, part, trials=trials, notice=notice)


def predict(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    top: int = 1,
    device: str = "auto",
    notice: Callable[[str], None] = lambda line: None,
) -> Iterator[Prediction]:
    """What a trained network sees in image files, in their order, as it comes.

    Args:
        model: a folder that vitnas wrote, a .onnx or .pt2 file, or a timm model's name.
        images: files, and folders for the images below them; or one of these alone.
        top: how many classes are named, at most all.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        notice: called with a line where the network does not say how images are prepared.

    Raises:
        VitnasError: the network cannot be read or takes no image files, or a folder has no image. A
            file that cannot be read is no error: its prediction has a `problem`.
    """
    if top < 1:
        raise ConfigError("must be 1 or more", address="--top", value=top, nearest=1)
    from vitnas.scoring import predict as predicting
    from vitnas.scoring.images import listed
    from vitnas.scoring.load import load_classifier

    paths = listed(images)
    classifier = load_classifier(str(model), device)
    if line := predicting.assumed(classifier):
        notice(line)
    return predicting.predict(classifier, paths, top)


def _part(score_on: str) -> Part:
    """Which images score a trained network."""
    if score_on in ("test", "val"):
        return "val" if score_on == "val" else "test"
    nearest = nearest_name(score_on, ("test", "val"))
    rule = "must be test or val"
    raise ConfigError(rule, address="--score-on", value=score_on, nearest=nearest)
