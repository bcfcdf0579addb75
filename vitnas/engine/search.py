"""A search from the space to the scored front: folder, study, data, back end, test scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vitnas.config.space import SearchSpace
from vitnas.engine import session
from vitnas.engine.backends.backend import Backend, open_backend, opening
from vitnas.engine.backends.prepare import Findings
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import Trained
from vitnas.engine.baselines import requests_for, shared_cache, train_baselines
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.ledger import Listener
from vitnas.engine.decide.locate import Candidate
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.decide.rules import Rules
from vitnas.engine.decide.steering import Steering
from vitnas.engine.decide.warm_start import known_trials, seed_candidates
from vitnas.engine.options import SearchOptions
from vitnas.engine.recipe import known_recipe, tuned_recipe
from vitnas.engine.store import study
from vitnas.engine.store.folder import check_folder, in_use, is_locked, locked, make_folder
from vitnas.engine.store.weights import KeptWeights
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.engine.watch.text import span
from vitnas.records import Run, TrialRecord

Notice = Callable[[str], None]
"""Told what is worth a line to whoever watches."""
_ENDLESS = 10**9


@dataclass(frozen=True)
class _Start:
    """What a search starts from."""

    first: tuple[Candidate, ...]
    known: tuple[tuple[Path, Candidate, TrialRecord, tuple[TrialRecord, ...]], ...]


def run_search(
    space: SearchSpace,
    out: str | Path,
    options: SearchOptions,
    listener: Listener | None = None,
    notice: Notice = lambda line: None,
    doing: Notice = lambda line: None,
    ended: Notice = lambda line: None,
) -> Run:
    """Search `space` until `options.trials` trainings have ended; resumes a run that was stopped.

    Args:
        space: what is searched.
        out: the results folder; made if it is not there.
        options: how.
        listener: called with `start`, `epoch` or `end` and the trial; for displays.
        notice: called with lines for whoever watches.
        ended: called with a line for each baseline that has ended.
        doing: called with what is done before and after the trainings, when it begins.

    Returns:
        The run as stored, its front scored on the test split.

    Raises:
        RunError: the folder cannot be used, or holds a run of another space or seed; a run to start
            from cannot be compared; no cluster answers.
        ConfigError: a network to train first is not in the space.
        DeviceError: a GPU was asked for and there is none.
        DataError: the images are missing or unreadable.
        KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
    """
    path = Path(out)
    check_folder(path)
    space, tuned = known_recipe(space, path, options)
    if (path / study.FILE_NAME).exists():
        attrs = study.read_study(path)[0]
        study.refuse_other(path, attrs, session.fixed(space, options))  # before reading any image
    if is_locked(path):
        raise in_use(path)
    start = _start(space, options, notice)
    doing(opening(options))
    backend = open_backend(options)
    try:
        doing(f"reading the images of {space.config.data.name}")
        if tuned is None:
            space, tuned = tuned_recipe(backend, space, path, options, notice, doing)
        found = backend.prepare(space, options.most_baselines)
        doing(_starting(space, options, backend.resources, found))
        make_folder(path)
        with locked(path), study.writable(path):
            store = study.RunStore(path, session.fixed(space, options) | (tuned or {}))
            try:
                session.refuse_other_images(store, found.data)
                for line in found.notices:
                    notice(line)
                options = session.resumed(options, store)
                session.describe(store, space, options, backend.resources, found)
                costs = space.config.objectives.costs
                with _listening(path, costs, options, listener) as listen:
                    num_images = found.data.num_val_images or 0
                    replication = Replication(options.replicates, num_images, costs)
                    controller = _controller(
                        store, space, options, backend, listen, start, replication
                    )
                    weights = KeptWeights(
                        path, num_images if replication.wanted else None, options.kept_bytes
                    )
                    _take_over(controller, start, weights, found.measured_on, notice)
                    _train(path, controller, backend, options, weights, notice)
                if found.data.num_test_images:
                    doing("scoring the front on the test images")
                    _score_front(store, backend, path)
                if found.baselines:
                    doing(f"training {len(found.baselines)} baselines")
                    _train_baselines(store, space, backend, found, notice=notice, ended=ended)
            finally:
                store.close()
        doing("ending the workers")
    finally:
        backend.close()
    return study.read_run(path)


def _starting(
    space: SearchSpace, options: SearchOptions, resources: Resources, found: Findings
) -> str:
    """How many trainings there will be at a time, and about how long all of them take."""
    number, epochs = options.num_trials, space.config.proxy.epochs
    workers = f"starting {resources.workers} worker{'s' * (resources.workers > 1)}"
    text = f"{workers} for {number or 'any number of'} trainings of {epochs} epochs"
    each = found.training_seconds
    if number and each:
        text += f", about {span(number * each / min(number, resources.workers))} in all"
    if not found.baselines:
        return text
    text += f", then {len(found.baselines)} baselines"
    theirs = found.baseline_seconds
    return f"{text}, about {span(theirs / resources.workers)}" if theirs else text


def _start(space: SearchSpace, options: SearchOptions, notice: Notice) -> _Start:
    """Find the networks that the search starts from, and open what it writes with."""
    if options.tensorboard:
        from vitnas.engine.watch.tensorboard import check_package

        check_package()
    first, misfits = seed_candidates(space, options.seed_configs)
    if misfits:
        origin, reason = next(iter(misfits.items()))
        total = len(first) + len(misfits)
        notice(f"--seed-configs: {len(first)} of {total} networks fit; {origin} {reason}")
    known = []
    for folder in map(Path, options.start_from):
        found = known_trials(space, study.read_run(folder), stopped=options.pruner != "none")
        known += [(folder, *pair) for pair in found]
    return _Start(first, tuple(known))


def _take_over(
    controller: Controller, start: _Start, weights: KeptWeights, device: str, notice: Notice
) -> None:
    """Enter what other runs found, with the weights that they kept.

    Where this run measures, on `device`, what was measured on others cannot be compared.
    """
    taken, elsewhere = 0, Counter[str]()
    for folder, candidate, trial, replicates in start.known:
        if device and trial.measured_on != device:
            elsewhere[trial.measured_on or "no device"] += 1
            continue
        number = controller.take(candidate, trial, replicates)
        if number is not None:
            taken += 1
            content = KeptWeights(folder).get(trial.number)
            if content is not None:
                weights.put(number, content)
    if taken:
        weights.clean(controller.trials, controller.costs)
        notice(f"--start-from: {taken} results taken over")
    for other, count in elsewhere.items():
        notice(f"--start-from: {count} results not taken over: measured on {other}, not {device}")


@contextmanager
def _listening(
    path: Path, costs: Sequence[str], options: SearchOptions, listener: Listener | None
) -> Iterator[Listener | None]:
    """The listener, joined by what writes TensorBoard's files where that is asked for."""
    if not options.tensorboard:
        yield listener
        return
    from vitnas.engine.watch.tensorboard import Curves

    with Curves(path / "tensorboard", costs) as curves:

        def both(event: str, trial: TrialRecord) -> None:
            curves.listen(event, trial)
            if listener is not None:
                listener(event, trial)

        yield both


def _controller(
    store: study.RunStore,
    space: SearchSpace,
    options: SearchOptions,
    backend: Backend,
    listener: Listener | None,
    start: _Start,
    replication: Replication,
) -> Controller:
    costs = space.config.objectives.costs
    rules = Rules(
        num_trials=options.num_trials or _ENDLESS,
        seed=options.seed,
        sampler=options.sampler,
        pruner=options.make_pruner(space.config.proxy.epochs, costs),
        budget=options.budget(backend.resources.gpus),
        replication=replication,
    )
    return Controller(store, space, rules, listener=listener, first=start.first)


def _train(
    path: Path,
    controller: Controller,
    backend: Backend,
    options: SearchOptions,
    weights: KeptWeights,
    notice: Notice,
) -> None:
    """Let the back end train until nothing is left to start, and note why it ended."""
    seconds = None if options.trial_minutes is None else 60 * options.trial_minutes
    steering = Steering(controller, weights, seconds)

    def wind_down() -> None:
        controller.drain()
        running = controller.num_in_flight
        notice(f"finishing what is running ({running}); Ctrl-C again stops now")

    with two_step_interrupt(wind_down):
        if not controller.done:
            backend.train(steering, path / ".tune")
    session.note(controller.store, ended_by=controller.cut_short_by)
    if controller.is_interrupted:
        raise KeyboardInterrupt


def _train_baselines(
    store: study.RunStore,
    space: SearchSpace,
    backend: Backend,
    found: Findings,
    **tellers: Notice,
) -> None:
    """Train what the front is compared with, or take it from the user's cache."""
    environment, config = store.attrs["environment"], space.config
    requests = requests_for(found.baselines, config.proxy, environment["seed"])
    cache = shared_cache(config.data, found.data, found.device, environment["sessions"][-1])
    try:
        train_baselines(store.path, requests, backend.answers, cache, **tellers)
    except KeyboardInterrupt:
        session.note(store, ended_by="interrupted")
        raise


def _score_front(store: study.RunStore, backend: Backend, path: Path) -> None:
    """Score the members of the final front once on the test split; no other network is scored.

    It uses the weights of the network's own training. If replicates brought the network to the
    front, these may be gone; then it uses those of the first replicate that has weights.
    """
    tested = store.attrs.get("test_top1", {})
    weights, run = KeptWeights(path), study.read_run(path)
    untested = [
        (trial.number, Trained(trial.network, content, str(file)))
        for trial in run.front
        if str(trial.number) not in tested
        and (number := next(filter(weights.has, run.trainings_of(trial)), None)) is not None
        and (content := weights.get(number)) is not None
        and (file := weights.path(number))
    ]
    scores = backend.score([network for _, network in untested]) if untested else []
    for (number, _), top1 in zip(untested, scores, strict=True):
        store.describe_ended(number, "test_top1", round(top1, 4))
