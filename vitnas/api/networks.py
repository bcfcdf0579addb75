"""One network: written from a run, trained for long, looked into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.api.runs import load_run, opened, results_folder
from vitnas.config.data import DataConfig
from vitnas.config.files import validate
from vitnas.config.recipe import DEFAULT_RECIPE, Recipe
from vitnas.config.space import SpaceConfig
from vitnas.errors import ConfigError, VitnasError

if TYPE_CHECKING:
    from vitnas.diagnose.run import Diagnosis
    from vitnas.run import Run


def export(
    run: Run | str | Path,
    to: str | Path,
    *,
    trial: int | None = None,
    under: str | None = None,
    knee: bool = False,
    epochs: int | None = None,
    formats: tuple[str, ...] = (),
    notice: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write one network of a run as a folder that `vitnas.load` reads.

    Args:
        run: where to choose from, or its folder.
        to: the folder; must not exist or be empty.
        trial: a trial's number; or
        under: the most accurate network of the front with at most these FLOPs, e.g. `"2M"`; or
        knee: the knee of the front.
        epochs: train again for this many; None = the proxy's weights, which are trained again with
            the trial's own seed when the run did not keep them (it keeps the front's).
        formats: files that run without vitnas: of `py`, `pt2` and `onnx`; see docs/export.md.
        notice: called with a line before a training, which says how long it takes, with one after
            each epoch, and with what is said of `formats`.

    Raises:
        VitnasError: no such network, or the folder cannot be used.
    """
    from vitnas.exported.choose import choose_trial
    from vitnas.exported.folder import check_free
    from vitnas.exported.network import export_network
    from vitnas.trained import shown_images, weights_of

    run = opened(run)
    chosen = choose_trial(run, trial=trial, under=under, knee=knee)
    check_free(Path(to))
    weights, how = weights_of(run, chosen, epochs, notice)
    if formats:
        images, preprocessing = shown_images(run, chosen, notice)
        how |= {"images": images, "preprocessing": preprocessing}
    return export_network(run, chosen, weights, to, formats=formats, notice=notice, **how)


def train(
    model: str | Path | None,
    to: str | Path,
    *,
    run: Run | str | Path | None = None,
    trial: int | None = None,
    baseline: str | None = None,
    data: str | DataConfig | None = None,
    recipe: str | Path | Recipe | None = None,
    device: str = "auto",
    threads: int | None = None,
    workers: int = 0,
    listener: Callable[[dict[str, Any]], None] | None = None,
    notice: Callable[[str], None] | None = None,
    formats: tuple[str, ...] = (),
    track: Sequence[str] = (),
    **options: Any,
) -> Path:
    """Train a network for long and write it as a folder that `vitnas.load` reads.

    The same call resumes a training that was stopped; see `docs/training.md`.

    Args:
        model: a model of the zoo, a model file or an exported folder; None = that of `trial`.
        to: the folder; must not exist or be empty.
        run, trial: the network is that of this trial and is trained on the images of the run, which
            is given as itself or by its folder; the result goes into the run, too (see
            `vitnas.trained_long.plan_for`).
        baseline: what is trained so instead: `vgg-17`, `vgg` for one of the trial's FLOPs, or
            `timm:NAME`.
        data: a data set's name, `name:folder`, or a folder of images by class; None = `digits`.
        recipe: the name of a shipped recipe, a file, or a `Recipe`; None = `small`, or the run's.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        threads: of the CPU; None = one, and beside a GPU all cores.
        workers: processes that read images from folders.
        listener: called with the log's entry after every epoch.
        notice: called with what is about to be trained, and with what is said of `formats`.
        formats: files that run without vitnas: of `py`, `pt2` and `onnx`; see docs/export.md.
        track: also log to `csv`, `tensorboard`, `wandb` or `mlflow`.
        **options: `epochs`, `img_size`, `teacher`, `score_on`, `seed`, `init_from`; see
            `vitnas.training.plan.make_plan`.

    Raises:
        VitnasError: something does not fit; the folder is not written.
    """
    from vitnas.exported.folder import check_free
    from vitnas.training.plan import make_plan
    from vitnas.training.tracking import parse_trackers

    trackers = parse_trackers(track)
    ended = None
    if run is not None:
        from vitnas.trained_long import keeping, plan_for

        run = opened(run)
        check_free(Path(to))
        plan = plan_for(run, trial, model, recipe, data=data, baseline=baseline, **options)
        ended = keeping(run, trial, plan, device, to)
    elif model is None or trial is not None or baseline is not None:
        rule = "name a MODEL to train, or a network of a run by --for RUN and --trial or --baseline"
        raise ConfigError(rule)
    else:
        images = "digits" if data is None else data
        plan = make_plan(model, images, DEFAULT_RECIPE if recipe is None else recipe, **options)
    from vitnas.training.train import train_network

    return train_network(
        plan,
        to,
        device=device,
        threads=threads,
        workers=workers,
        listener=listener,
        notice=notice,
        ended=ended,
        formats=formats,
        track=trackers,
    )


def diagnose(
    model: str | Path,
    data: str | None = None,
    *,
    out: str | Path | None = None,
    only: str | None = None,
    images: int = 256,
    trial: int | None = None,
    weights: str | None = None,
    seed: int = 0,
    device: str = "auto",
    suggest: str | None = None,
    notice: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> tuple[Diagnosis, Path]:
    """Look into a network and write figures and numbers; see `docs/diagnose.md`.

    Args:
        model: a name of the zoo or timm, a model file, an exported folder, or a run with `trial`.
        data: a data set's name, `name:folder`, a folder of images or a space; of a run its own.
        out: the folder; default `results/diagnose/<name>`.
        only: names of diagnostics with commas between; None = all but the landscape.
        images: how many are shown, fewer where there are fewer.
        trial: of a run: this trial.
        weights: a safetensors file for a named network or a model file; None = random ones.
        seed: of random weights, of the choice of images and of the landscape's directions.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        suggest: `reattention`: how many blocks a search may start with re-attention in.
        notice: called with a line on images that are skipped, and with lines on how far the
            landscape is.
        **options: `tau`, `image`, `map_images`, `points` and `log` of
            `vitnas.diagnose.run.diagnose`.

    Returns:
        What was found, and the folder that holds it.

    Raises:
        VitnasError: one line; nothing was written.
    """
    from vitnas.diagnose import choose

    chosen = choose(only)
    from vitnas.data.decode import skipped_text
    from vitnas.diagnose import run as looking
    from vitnas.diagnose.images import data_named, show
    from vitnas.diagnose.subject import load_subject
    from vitnas.diagnose.suggest import check_suggestion
    from vitnas.training.device import resolve_device

    place = resolve_device(device)
    found = None if data is None else data_named(data)
    if trial is None:
        subject = load_subject(str(model), weights, seed)
    elif weights is not None:
        raise VitnasError(f"{model}: a network of a run has its own weights; leave --weights out")
    else:
        from vitnas.exported.choose import choose_trial
        from vitnas.trained import kept_subject

        run = load_run(model)
        subject = kept_subject(run, choose_trial(run, trial=trial))
        found = found or validate(SpaceConfig, dict(run.space)).data
    if found is None:
        raise ConfigError("is required: a data set, a folder or a space", address="--data")
    check_suggestion(suggest, subject.network)
    shown = show(found, subject, images, seed)
    for line in skipped_text(shown.facts["skipped"]):
        notice(line)
    folder = results_folder(out, "diagnose", subject.name)
    looking.check_place(folder)
    options["log"] = Path(options["log"]) if options.get("log") else subject.log
    options |= {"classes": shown.classes, "seed": seed, "notice": notice}
    facts = {"network": subject.name, "weights": subject.weights, "seed": seed, **shown.facts}
    network = subject.network.to(place)
    if suggest and "similarity" not in chosen:
        chosen = ("similarity", *chosen)
    result = looking.diagnose(network, shown.images, chosen, facts=facts, **options)
    if suggest:
        result = looking.with_suggestion(result)
    result.write(folder)
    return result, folder
