"""A trained network of a run: its weights as the run kept them, or trained again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.space import SpaceConfig
from vitnas.data.telling import Tell, Teller
from vitnas.diagnose.subject import Subject, subject_of
from vitnas.durations import span
from vitnas.engine.store.weights import KeptWeights
from vitnas.errors import RunError, VitnasError, printable, typed
from vitnas.exported.check import NUMBER
from vitnas.exported.preprocessing import Preprocessing, trained_on
from vitnas.nn.model import build_model
from vitnas.nn.weights import network_with, weights_bytes
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.training.data import load_data
from vitnas.training.device import own_threads
from vitnas.training.proxy import ProxyTraining
from vitnas.training.score import evaluate
from vitnas.words import plural


def weights_of(
    run: Run, trial: TrialRecord, epochs: int | None, notice: Tell
) -> tuple[bytes, dict[str, Any]]:
    """The weights of a trial's network: kept ones, or those of a training with the trial's seed.

    Args:
        run: where the trial is from.
        trial: the network.
        epochs: train it for so many, whatever is kept; None = kept weights, or as many as the
            proxy's.
        notice: called with a line before a training, and with one after each of its epochs.

    Returns:
        The weights in safetensors' format, and their `file` or the `epochs`, `top1` and
        `test_top1` of the training.

    Raises:
        VitnasError: the data cannot be read, or are others.
        Diverged: the loss is not finite.
    """
    kept = KeptWeights(run.path)
    weights = kept.get(trial.number) if epochs is None else None
    if weights is not None:
        return weights, {"file": kept.path(trial.number)}
    space = validate(SpaceConfig, dict(run.space))
    notice(_announced(trial, epochs, space.data.folds))
    return _train(run, space, trial, epochs, notice)


def kept_subject(run: Run, trial: TrialRecord) -> Subject:
    """A trial's network with the weights that the run kept, to look into.

    Raises:
        RunError: they are not kept; names the command that trains them again.
    """
    kept = KeptWeights(run.path)
    weights = kept.get(trial.number)
    if weights is None:
        command = f"vitnas export {typed(run.path)} --trial {trial.number} --to DIR"
        is_late = any(member.number == trial.number for member in run.front)
        why = "it came to the front when they were deleted" if is_late else "those of the front are"
        raise RunError(
            f"{run.path}: the weights of trial {trial.number} are not kept ({why}): {command} "
            "trains them again"
        )
    network: Any = network_with(trial.network, weights, kept.path(trial.number))
    network.label_names = tuple(map(printable, run.environment.data.classes or ()))
    where = f"those of trial {trial.number} in {run.path}"
    return _with_values(run, subject_of(network, f"{run.name}_trial_{trial.number}", where))


def shown_images(
    run: Run, trial: TrialRecord, notice: Tell
) -> tuple[Tensor | None, Preprocessing | None]:
    """Normalised images that score candidates, and how they are prepared; None without the data."""
    from vitnas.diagnose.images import show

    data = validate(SpaceConfig, dict(run.space)).data
    subject = _with_values(run, subject_of(build_model(trial.network), run.name, ""))
    try:
        drawn = show(data, subject, NUMBER).images
    except VitnasError as error:
        notice(f"its images are not there, so random ones check the files: {error}")
        return None, None
    values = [(part.flatten() / 255).tolist() for part in (drawn.mean, drawn.std)]
    return drawn.normalise(drawn.x), trained_on(data.name, *values)


def _with_values(run: Run, subject: Subject) -> Subject:
    """With the mean and deviation of the run's trainings, where it tells them."""
    known = run.environment.data.normalisation(subject.image_hw)
    return subject if known is None else replace(subject, mean=known.mean, std=known.std)


def _announced(trial: TrialRecord, epochs: int | None, folds: int) -> str:
    """That the trial is trained, on the first of its folds, and how long that takes where the run
    tells."""
    number = epochs or trial.epochs
    what = "its weights are not kept; training it again" if epochs is None else "training it anew"
    line = f"trial {trial.number}: {what} for {plural(number, 'epoch')}"
    if trial.seconds and trial.curve:
        line += f", about {span(trial.seconds / len(trial.curve) / folds * number)}"
    return line


def _train(
    run: Run, space: SpaceConfig, trial: TrialRecord, epochs: int | None, notice: Tell
) -> tuple[bytes, dict[str, Any]]:
    proxy = space.proxy if epochs is None else space.proxy.for_epochs(epochs)
    images = load_data(space.data, trial.network.img_size, proxy.train_fraction, Teller(notice))
    images.check_same(run.environment.data.fingerprint)
    training = ProxyTraining(trial.network, proxy, images, trial.seed, "auto")
    facts: dict[str, Any] = {"epochs": proxy.epochs}
    with own_threads(training.device):
        for done in training:
            facts["top1"] = done.top1
            epoch = f"epoch {done.epoch:>{len(str(proxy.epochs))}}/{proxy.epochs}"
            scores = f"loss {done.loss:.4f}  top-1 {done.top1:.2f} %"
            notice(f"{epoch}  {scores}  {done.seconds:.1f} s")
    if images.has_test:
        facts["test_top1"] = evaluate(training.scored(), images.test(), proxy.eval_batch_size)
    return weights_bytes(training.scored()), facts
