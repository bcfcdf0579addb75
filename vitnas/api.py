"""The verbs of vitnas: what the command line does, as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.data import DataConfig
from vitnas.config.data_names import read_data
from vitnas.config.files import validate
from vitnas.config.recipe import DEFAULT_RECIPE, Recipe
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.config.space import load_space as _load_space
from vitnas.cost.survey import check_limits
from vitnas.errors import ConfigError, nearest_name

if TYPE_CHECKING:
    from vitnas.calibration.result import Calibration
    from vitnas.deploy.result import DeployCheck
    from vitnas.diagnose.run import Diagnosis
    from vitnas.engine.decide.ledger import Listener
    from vitnas.engine.tuning.result import Tuned
    from vitnas.records import TrialRecord
    from vitnas.run import Run
    from vitnas.scoring.data import Part
    from vitnas.scoring.evaluate import Evaluation
    from vitnas.scoring.predict import Prediction

DEFAULT_SPACE = "digits"


def load_space(
    path: str | Path = DEFAULT_SPACE, data: str | DataConfig | None = None
) -> SearchSpace:
    """Read a space file, or a shipped space by name, and make sure that its limits can be met.

    Args:
        path: the file or the name.
        data: images in place of the space's own: a data set's name, `name:folder`, a folder of
            images by class, or a space file. The networks get as many classes and channels.

    Raises:
        ConfigError: one line with file, address, value and rule.
    """
    space = _load_space(path, read_data(data, trains=True) if isinstance(data, str) else data)
    check_limits(space)
    return space


def search(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    listener: Listener | None = None,
    notice: Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Search a space and write its results folder; the same call resumes a stopped run.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the results folder; default `results/<name>`.
        progress: whether to print what is done, a line a trial, and on a terminal a live panel.
        listener: called with every change; see `vitnas.engine.decide.ledger.Listener`.
        notice: called with lines for whoever watches; by default they are printed with `progress`.
        **options: fields of `vitnas.engine.options.SearchOptions`.

    Returns:
        The run, its front scored on the test split.

    Raises:
        VitnasError: the space, folder, data or device cannot be used; nothing was written.
    """
    from vitnas.engine.declare import check
    from vitnas.engine.options import SearchOptions

    check(SearchOptions, options)
    from vitnas.engine.search import run_search
    from vitnas.engine.store.study import FILE_NAME
    from vitnas.engine.watch.display import Display
    from vitnas.report import write_report

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = _folder(out, found.name)
    chosen, config = SearchOptions(**options), found.config
    trials, epochs, costs = chosen.num_trials, config.proxy.epochs, config.objectives.costs
    follow = bool(chosen.most_baselines)
    with Display(trials, epochs, costs=costs, shown=progress, baselines_follow=follow) as display:

        def listen(event: str, trial: TrialRecord) -> None:
            display.listen(event, trial)
            if listener is not None:
                listener(event, trial)

        try:
            tell = notice or display.note
            tellers = (tell, display.say, display.note, display.scored_by)
            run = run_search(found, folder, chosen, listen, *tellers)
        except KeyboardInterrupt:
            if (folder / FILE_NAME).is_file():
                write_report(load_run(folder))
            raise
        display.say("writing the report")
        write_report(run)
    return run


def tune(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    notice: Callable[[str], None] = print,
    **options: Any,
) -> tuple[Tuned, Path]:
    """Find the recipe of a space's short training for its images; the same call resumes.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the folder; default `results/tune/<name>`.
        notice: called with lines for whoever watches.
        **options: fields of `vitnas.engine.tuning.options.TuneOptions`.

    Returns:
        What was found: `proxy`, `gain`, `tried`; and the folder that holds it.

    Raises:
        VitnasError: the space, folder, data or device cannot be used; or no training ended well.
    """
    from vitnas.engine.declare import check
    from vitnas.engine.tuning.options import TuneOptions

    check(TuneOptions, options)
    from vitnas.engine.tuning.run import run_tune

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = _folder(out, "tune", found.name)
    return run_tune(found, folder, TuneOptions(**options), notice, notice), folder


def calibrate(
    space: SearchSpace | str | Path = DEFAULT_SPACE,
    out: str | Path | None = None,
    *,
    notice: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> tuple[Calibration, Path]:
    """Measure how well cheap trainings of a space foretell long ones; see `docs/calibrate.md`.

    The same call resumes a calibration that was stopped.

    Args:
        space: a space, its file, or the name of a shipped one.
        out: the folder; default `results/calibrate/<name>`.
        notice: called with a line after every training.
        **options: fields of `vitnas.calibration.options.CalibrationOptions`.

    Returns:
        What was found, and the folder that holds it.

    Raises:
        VitnasError: the space, options, folder, data or device cannot be used.
    """
    from vitnas.calibration.options import CalibrationOptions
    from vitnas.engine.declare import check

    check(CalibrationOptions, options)
    from vitnas.calibration.run import run_calibration

    found = space if isinstance(space, SearchSpace) else load_space(space)
    folder = _folder(out, "calibrate", found.name)
    return run_calibration(found, folder, CalibrationOptions(**options), notice), folder


def load_run(path: str | Path) -> Run:
    """Read a results folder, without torch or Ray.

    Raises:
        RunError: there is no run in it, or it is damaged.
    """
    from vitnas.engine.store.study import read_run

    return read_run(path)


def export(
    run: Run,
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
        run: where to choose from.
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
    run: Run | None = None,
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
        run, trial: the network is that of this trial and is trained on the run's images; the result
            goes into the run, too (see `vitnas.trained_long.plan_for`).
        baseline: what is trained so instead: `vgg-17`, or `vgg` for one of the trial's FLOPs.
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
        weights: a safetensors file for a named network; None = random ones.
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
    folder = _folder(out, "diagnose", subject.name)
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
    subject: str | Path,
    data: str | DataConfig | None = None,
    *,
    score_on: str = "test",
    trials: Sequence[int] = (),
    notice: Callable[[str], None] = lambda line: None,
) -> DeployCheck:
    """Measure where networks will run: onnxruntime, int8, fp16, delegates; see `docs/deploy.md`.

    Args:
        subject: an exported folder, or a run: then all networks of its front.
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

    return check.deploy_check(subject, config, part, trials=trials, notice=notice)


def predict(
    model: str | Path,
    images: Iterable[str | Path],
    *,
    top: int = 1,
    device: str = "auto",
    notice: Callable[[str], None] = lambda line: None,
) -> Iterator[Prediction]:
    """What a trained network sees in image files, in their order, as it comes.

    Args:
        model: a folder that vitnas wrote, a .onnx or .pt2 file, or a timm model's name.
        images: files, and folders for the images below them.
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


def _folder(out: str | Path | None, *rooms: str) -> Path:
    """The folder that a user names, or the one in `results/`."""
    return Path("results", *rooms) if out is None else Path(out)


def _part(score_on: str) -> Part:
    """Which images score a trained network."""
    if score_on in ("test", "val"):
        return "val" if score_on == "val" else "test"
    nearest = nearest_name(score_on, ("test", "val"))
    rule = "must be test or val"
    raise ConfigError(rule, address="--score-on", value=score_on, nearest=nearest)
