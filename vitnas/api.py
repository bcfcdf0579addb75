"""The verbs of vitnas: what the command line does, as functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.space import load_space as _load_space
from vitnas.cost.survey import check_limits

if TYPE_CHECKING:
    from vitnas.engine.controller import Listener
    from vitnas.records import Run, TrialRecord

DEFAULT_SPACE = "digits"


def load_space(path: str | Path = DEFAULT_SPACE) -> SearchSpace:
    """Read a space file, or a shipped space by name, and make sure that its limits can be met.

    Raises:
        ConfigError: one line with file, address, value and rule.
    """
    space = _load_space(path)
    check_limits(space)
    return space


def search(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    listener: Listener | None = None,
    **options: Any,
) -> Run:
    """Search a space and write its results folder; the same call goes on with a stopped run.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the results folder; default `results/<name>`.
        listener: told of every change; see `vitnas.engine.controller.Listener`.
        **options: fields of `vitnas.engine.search.SearchOptions`.

    Returns:
        The run, its front scored on the test split.

    Raises:
        VitnasError: the space, folder, data or device cannot be used; nothing was written.
    """
    from vitnas.engine.search import SearchOptions, run_search
    from vitnas.engine.study import FILE_NAME
    from vitnas.report import write_report

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = Path(out) if out is not None else Path("results") / found.name
    try:
        run = run_search(found, folder, SearchOptions(**options), listener)
    except KeyboardInterrupt:
        if (folder / FILE_NAME).is_file():
            write_report(load_run(folder))
        raise
    write_report(run)
    return run


def load_run(path: str | Path) -> Run:
    """Read a results folder, without torch or Ray.

    Raises:
        RunError: there is no run in it, or it is damaged.
    """
    from vitnas.engine.study import read_run

    return read_run(path)


def export(
    run: Run,
    to: str | Path,
    *,
    trial: int | None = None,
    under: str | None = None,
    knee: bool = False,
    epochs: int | None = None,
) -> Path:
    """Write one network of a run as a folder that `vitnas.load` reads.

    Args:
        run: where to choose from.
        to: the folder; must not exist or be empty.
        trial: a trial's number; or
        under: the most accurate network of the front with at most these FLOPs, e.g. `"2M"`; or
        knee: the knee of the front.
        epochs: train anew for so many; None = the proxy's weights, which are trained again with
            the trial's own seed when the run did not keep them (it keeps the front's).

    Raises:
        VitnasError: no such network, or the folder cannot be used.
    """
    from vitnas.export import choose_trial, export_network

    chosen = choose_trial(run, trial=trial, under=under, knee=knee)
    weights, how = _weights(run, chosen, epochs)
    return export_network(run, chosen, weights, to, **how)


def _weights(run: Run, trial: TrialRecord, epochs: int | None) -> tuple[bytes, dict[str, Any]]:
    """The weights to export, and what the model card says about them."""
    from vitnas.engine.weights import FrontWeights

    kept = FrontWeights(run.path).get(trial.number)
    if epochs is None and kept is not None:
        return kept, {}
    from vitnas.config.space import SpaceConfig
    from vitnas.training.data import load_data
    from vitnas.training.proxy import ProxyTraining, evaluate
    from vitnas.training.weights import weights_bytes

    space = validate(SpaceConfig, dict(run.space))
    config = validate(ModelConfig, dict(trial.config))
    proxy = space.proxy if epochs is None else space.proxy.model_copy(update={"epochs": epochs})
    images = load_data(space.data, config.img_size)
    training = ProxyTraining(config, proxy, images, trial.seed, "auto")
    top1 = 0.0
    for result in training:
        top1 = result.top1
    facts: dict[str, Any] = {"epochs": proxy.epochs, "top1": top1}
    if images.has_test:
        facts["test_top1"] = evaluate(training.model, images.test(), proxy.eval_batch_size)
    return weights_bytes(training.model), facts
