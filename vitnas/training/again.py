"""The proxy's training of a trial again, or for another number of epochs: weights to export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vitnas.config.files import validate
from vitnas.config.space import SpaceConfig
from vitnas.nn.weights import weights_bytes
from vitnas.records import Run, TrialRecord
from vitnas.training.data import load_data
from vitnas.training.device import own_threads
from vitnas.training.proxy import ProxyTraining, evaluate


def train_again(
    run: Run, trial: TrialRecord, epochs: int | None, notice: Callable[[str], None]
) -> tuple[bytes, dict[str, Any]]:
    """Train the network of a trial with the trial's own seed, on the data of its run.

    Args:
        run: where the trial is from.
        trial: the network.
        epochs: for how many; None = the proxy's.
        notice: called with a line after each epoch.

    Returns:
        The weights in safetensors' format, and the `epochs`, `top1` and `test_top1` that they had.

    Raises:
        VitnasError: the data cannot be read, or are others.
        Diverged: the loss is not finite.
    """
    space = validate(SpaceConfig, dict(run.space))
    proxy = space.proxy if epochs is None else space.proxy.model_copy(update={"epochs": epochs})
    images = load_data(space.data, trial.network.img_size)
    training = ProxyTraining(trial.network, proxy, images, trial.seed, "auto")
    facts: dict[str, Any] = {"epochs": proxy.epochs}
    with own_threads(training.device):
        for done in training:
            facts["top1"] = done.top1
            epoch = f"epoch {done.epoch:>{len(str(proxy.epochs))}}/{proxy.epochs}"
            scores = f"loss {done.loss:.4f}  top-1 {done.top1:.2f} %"
            notice(f"{epoch}  {scores}  {done.seconds:.1f} s")
    if images.has_test:
        facts["test_top1"] = evaluate(training.model, images.test(), proxy.eval_batch_size)
    return weights_bytes(training.model), facts
