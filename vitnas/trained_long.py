"""A long training for a run, of a trial's network or of a baseline: what is trained, and what the
run keeps of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log, prod
from pathlib import Path
from typing import Any

from vitnas.calibration.options import TIMES
from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.differences import differences
from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig
from vitnas.config.notation import human
from vitnas.config.recipe import Recipe
from vitnas.config.space import SpaceConfig
from vitnas.config.training import ProxyConfig
from vitnas.errors import ConfigError, RunError, nearest_name, printable
from vitnas.exported.card import name_of
from vitnas.exported.choose import choose_trial
from vitnas.exported.design import size_of_design
from vitnas.longer import PROXY, LongTraining, add, check_can_add, setting_of
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.training.plan import Plan, make_plan
from vitnas.training.start import TIMM, FromTimm

_SHAPE = ("image_hw", "in_chans", "num_classes")
_NONE = "no trial is complete yet, so there is no network to train"
_OF_THE_RUN = {"data": "--data", "img_size": "--img-size", "score_on": "--score-on"}


def plan_for(
    run: Run,
    number: int | None,
    model: str | Path | None = None,
    recipe: str | Path | Recipe | None = None,
    baseline: str | None = None,
    lr: float | None = None,
    **options: Any,
) -> Plan:
    """A long training of a trial's network, or of a baseline, on the run's images, split as there.

    Takes no torch but for a baseline.

    Args:
        run: whose images and recipe these are.
        number: of the trial.
        model: the trial's network, in a file or a folder; None = as the run has it. It gets the
            name that an export gives it.
        recipe: see `make_plan`; None = the run's own short one, with `epochs` or three times as
            many as its own.
        baseline: what is trained instead: a family and a width, as `vgg-17`; a family alone, of
            which the member nearest to the trial in FLOPs is taken; or `timm:NAME`, a network of
            timm at the run's image size.
        lr: peak learning rate by the run's own recipe; None = that of the trials, for a family's
            member the rate that the run found for it, or for the next member in width.
        **options: those of `make_plan`; `data`, `img_size` and `score_on` must be None.

    Raises:
        VitnasError: no such trial or baseline, another network, an option that is the run's, or the
            run's folder cannot be written.
    """
    for name, option in _OF_THE_RUN.items():
        if options.pop(name, None) is not None:
            raise ConfigError(f"the images are those of {run.path}, split as there; drop {option}")
    own: Design
    if baseline is None:
        trial = _trial(run, number)
        own, called = trial.network, f"trial {trial.number}"
    elif model is None:
        own = baseline_of(run, number, baseline)
        called = f"baseline {_name(own)}"
    else:
        raise ConfigError("give MODEL or --baseline, not both")
    check_can_add(run.path)
    space = validate(SpaceConfig, dict(run.space))
    if recipe is None:
        epochs = options.pop("epochs", None)
        epochs = TIMES * space.proxy.epochs if epochs is None else epochs
        proxy = space.proxy.for_epochs(epochs)
        if lr is None and isinstance(own, Baseline):
            lr = rate_of(run, own, proxy.lr)
        proxy = proxy if lr is None else proxy.at_rate(lr)
        recipe = _plain(proxy)
        plan = replace(make_plan(model or own, space.data, recipe, **options), recipe_name=PROXY)
    else:
        plan = make_plan(model or own, space.data, recipe, **options)
    if model is not None:
        _check_network(run, trial, plan, model)
    config = plan.config
    if baseline is None:
        config = config.model_copy(update={"name": name_of(run, trial)})
    origin = f"run `{run.path}`, {called}, space {run.name}"
    fingerprint = run.environment.data.told().get("fingerprint")
    return replace(plan, config=config, fingerprint=fingerprint, origin=printable(origin))


def keeping(
    run: Run, number: int | None, plan: Plan, device: str, to: str | Path
) -> Callable[[Sequence[dict[str, Any]], float | None], None]:
    """What writes the result of `plan` into the run, from the log and the test top-1 in percent."""
    network, whose = plan.config, dict[str, Any]()
    if isinstance(network, ModelConfig):
        trial = _trial(run, number)
        whose = {"trial": trial.number, "key": trial.key}
    else:
        flops = size_of_design(network).flops
        whose = {"baseline": _name(network), "flops": flops, "key": network.key}
    start, setting = plan.init_from, plan.identity()
    weights = start.text if isinstance(start, FromTimm) else str(start or "")
    if plan.recipe_name == PROXY:
        own = validate(SpaceConfig, dict(run.space)).proxy
        if plan.recipe.lr != own.lr:  # the recipe is the run's all the same
            whose["lr"] = plan.recipe.lr
            setting["recipe"] |= {"lr": own.lr, "min_lr": own.min_lr}

    def keep(log: Sequence[dict[str, Any]], test_top1: float | None) -> None:
        from vitnas.engine.backends.worker import device_name
        from vitnas.training.device import resolve_device

        training = LongTraining(
            **whose,
            top1=log[-1]["top1"],
            test_top1=test_top1,
            epochs=plan.recipe.epochs,
            seed=plan.seed,
            recipe=printable(plan.recipe_name),
            weights=printable(weights),
            setting=setting_of(setting),
            seconds=sum(entry["seconds"] for entry in log),
            device=device_name(str(resolve_device(device))),
            ended=time.time(),
            folder=printable(str(to)),
        )
        add(run.path, training)

    return keep


def _name(network: Baseline | GraftFile) -> str:
    """`vgg-17` or `timm:resnet10t`."""
    return network.name if isinstance(network, Baseline) else TIMM + network.model


def _of_timm(run: Run, number: int | None, name: str) -> GraftFile:
    """The network of timm of this name, without grafts, for the run's images."""
    from timm.models import split_model_name_tag

    if number is not None:
        rule = "a network of timm has a size of its own; drop --trial"
        raise ConfigError(rule, address="--baseline", value=TIMM + name)
    shape = _shape(run)
    options = {"img_size": shape.pop("image_hw"), **shape}
    plain, _ = split_model_name_tag(name)  # the tag names weights, which --init-from takes
    file = validate(GraftFile, {"model": plain, "options": options, "grafts": []})
    try:
        size_of_design(file)
    except ConfigError as error:
        raise error.at(prefix="--baseline") from None
    return file


def baseline_of(run: Run, number: int | None, name: str) -> Baseline | GraftFile:
    """The baseline of this name for the run's images, or of a family at the FLOPs of a trial.

    Raises:
        RunError: no trial is complete.
        ConfigError: there is none of this name, or none of such FLOPs.
    """
    from vitnas.baselines.families import FAMILIES
    from vitnas.baselines.sizes import nearest

    if not run.complete:
        raise RunError(f"{run.path}: {_NONE}")
    if name.startswith(TIMM):
        return _of_timm(run, number, name.removeprefix(TIMM))
    family, _, width = name.partition("-")
    if family not in FAMILIES:
        rule = f"no such family; known are {', '.join(FAMILIES)}, and timm:NAME"
        near = nearest_name(family, FAMILIES)
        raise ConfigError(rule, address="--baseline", value=name, nearest=near)
    if bool(width) == (number is not None):
        rule = f"give a width, as {family}-16, or --trial N for one of like FLOPs"
        raise ConfigError(rule, address="--baseline", value=name)
    shape = _shape(run)
    if width:
        try:
            return validate(Baseline, {"family": family, "width": int(width), **shape})
        except (ValueError, ConfigError):
            rule = "the width is a whole number from 1 to 1,000,000"
            raise ConfigError(rule, address="--baseline", value=name) from None
    trial, some = _trial(run, number), validate(Baseline, {"family": family, "width": 1, **shape})
    if (found := nearest(some, trial.flops)) is None:
        flops = human(trial.flops)
        rule = (
            f"no width has like FLOPs as trial {trial.number} ({flops}); name one, as {family}-16"
        )
        raise ConfigError(rule, address="--baseline", value=name)
    return found.baseline


def _shape(run: Run) -> dict[str, Any]:
    """What a baseline reads: as the run's own do, whose images have the largest size of several."""
    records = run.baselines or run.complete
    largest = max((one.network for one in records), key=lambda network: prod(network.image_hw))
    return {field: getattr(largest, field) for field in _SHAPE}


def rate_of(run: Run, baseline: Baseline, own: float) -> float:
    """The learning rate that the run found for this baseline, or for the next one of its family in
    width, of those that reached their end at it; `own` where it has none."""
    known = [one for one in run.baselines if one.lr and one.top1 is not None]
    family = [one for one in known if one.family == baseline.family]
    near = min(family, key=lambda one: abs(log(one.width / baseline.width)), default=None)
    return own if near is None else near.lr


def _trial(run: Run, number: int | None) -> TrialRecord:
    if not run.complete:
        raise RunError(f"{run.path}: {_NONE}")
    if number is None:
        known = "" if run.knee is None else f"; the knee is trial {run.knee.number}"
        rule = "--for needs --trial and the number of a network, or --baseline and its name"
        raise RunError(f"{run.path}: {rule}{known}")
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
    if not isinstance(given, ModelConfig):
        what = f"{TIMM}{given.name}" if isinstance(given, GraftFile) else "a baseline"
        rule = f"is {what}, and not the network of trial {trial.number}"
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
