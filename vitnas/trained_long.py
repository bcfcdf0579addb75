"""A long training of a network that a run found: what is trained, and what the run keeps of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitnas.calibration.options import TIMES
from vitnas.config.differences import differences
from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.space import SpaceConfig
from vitnas.config.training import ProxyConfig
from vitnas.errors import ConfigError, RunError, printable
from vitnas.exported.choose import choose_trial
from vitnas.longer import LongTraining, add, check_can_add, setting_of
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.training.plan import Plan, make_plan

PROXY = "proxy"
"""The recipe's name where it is the run's own."""
_OF_THE_RUN = {"data": "--data", "img_size": "--img-size", "score_on": "--score-on"}


def plan_for(
    run: Run,
    number: int | None,
    model: str | Path | None = None,
    recipe: str | Path | Recipe | None = None,
    **options: Any,
) -> Plan:
    """A long training of a trial's network on the images of its run, split as there; no torch.

    Args:
        run: where the trial is from.
        number: of the trial.
        model: its network, in a file or a folder; None = as the run has it.
        recipe: see `make_plan`; None = the run's own short one, with `epochs` or three times as
            many as its own.
        **options: those of `make_plan`; `data`, `img_size` and `score_on` must be None.

    Raises:
        VitnasError: no such trial, another network, an option that is the run's, or the run's
            folder cannot be written.
    """
    for name, option in _OF_THE_RUN.items():
        if options.pop(name, None) is not None:
            raise ConfigError(f"the images are those of {run.path}, split as there; drop {option}")
    trial = _trial(run, number)
    check_can_add(run.path)
    space = validate(SpaceConfig, dict(run.space))
    own = trial.network
    if recipe is None:
        epochs = options.pop("epochs", None)
        epochs = TIMES * space.proxy.epochs if epochs is None else epochs
        recipe = _plain(space.proxy.for_epochs(epochs))
        plan = replace(make_plan(model or own, space.data, recipe, **options), recipe_name=PROXY)
    else:
        plan = make_plan(model or own, space.data, recipe, **options)
    if model is not None:
        _check_network(run, trial, plan, model)
    origin = f"run `{run.path}`, trial {trial.number}, space {run.name}"
    fingerprint = run.environment.data.told().get("fingerprint")
    return replace(plan, fingerprint=fingerprint, origin=printable(origin))


def keeping(
    run: Run, number: int | None, plan: Plan, device: str, to: str | Path
) -> Callable[[Sequence[dict[str, Any]], float | None], None]:
    """What writes the result of `plan` into the run, from the log and the test top-1 in percent."""
    trial = _trial(run, number)

    def keep(log: Sequence[dict[str, Any]], test_top1: float | None) -> None:
        from vitnas.engine.backends.worker import device_name
        from vitnas.training.device import resolve_device

        training = LongTraining(
            trial=trial.number,
            key=trial.key,
            top1=log[-1]["top1"],
            test_top1=test_top1,
            epochs=plan.recipe.epochs,
            seed=plan.seed,
            recipe=printable(plan.recipe_name),
            setting=setting_of(plan.identity()),
            seconds=sum(entry["seconds"] for entry in log),
            device=device_name(str(resolve_device(device))),
            ended=time.time(),
            folder=printable(str(to)),
        )
        add(run.path, training)

    return keep


def _trial(run: Run, number: int | None) -> TrialRecord:
    if not run.complete:
        raise RunError(f"{run.path}: no trial is complete yet, so there is no network to train")
    if number is None:
        known = "" if run.knee is None else f"; the knee is trial {run.knee.number}"
        raise RunError(f"{run.path}: --for needs --trial and the number of a network{known}")
    return choose_trial(run, trial=number)


def _plain(proxy: ProxyConfig) -> Recipe:
    """The same training as a recipe's file can say it."""
    return validate(Recipe, proxy.model_dump(exclude={"recipe"}))


def _check_network(run: Run, trial: TrialRecord, plan: Plan, model: str | Path) -> None:
    """Make sure that a model that was given is the network of a trial.

    Drop-path is the recipe's where it says one.

    Raises:
        RunError: it is not; names the differences, and the trial that it is of, if any.
    """
    theirs, changes = trial.network, {"drop_path_rate": trial.network.drop_path_rate}
    given = plan.config
    if isinstance(given, GraftFile):
        rule = f"is a network of timm with grafts, and not that of trial {trial.number}"
        raise RunError(f"{model}: {rule} of {run.path}; leave MODEL out to train the trial's own")
    if plan.recipe.drop_path_rate is not None:
        given = validate(ModelConfig, {**given.model_dump(), **changes})
    if given.key == theirs.key:
        return
    old, new = (one.canonical().model_dump(mode="json") for one in (theirs, given))
    told = "; ".join(list(differences(old, new))[:3])
    line = f"{model}: is another network than trial {trial.number} of {run.path}: {told}"
    same = next((one.number for one in run.complete if one.key == given.key), None)
    nearest = "" if same is None else f" (nearest: it is that of trial {same})"
    raise RunError(f"{line}; leave MODEL out to train the trial's own{nearest}")
