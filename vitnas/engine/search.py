"""A search from the space to the scored front: folder, study, data, back end, test scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitnas.config.space import SearchSpace
from vitnas.data.telling import Tell
from vitnas.engine import session
from vitnas.engine.backends.backend import Backend, open_backend, opening
from vitnas.engine.backends.prepare import Findings, check_onnx
from vitnas.engine.backends.worker import Trained
from vitnas.engine.baselines import Baselines, shared_cache
from vitnas.engine.batch.references import untrained
from vitnas.engine.decide import warm_start
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.locate import Candidate
from vitnas.engine.decide.rules import Rules
from vitnas.engine.decide.steering import Steering
from vitnas.engine.options import SearchOptions
from vitnas.engine.recipe import Found, known_recipe, tuned_recipe, why_untuned
from vitnas.engine.samplers import check_proposes
from vitnas.engine.store import study
from vitnas.engine.store.folder import check_folder, in_use, is_locked, locked, make_folder
from vitnas.engine.store.weights import KeptWeights
from vitnas.engine.watch.interrupts import two_step_interrupt
from vitnas.engine.watch.outlook import outlook
from vitnas.engine.watch.watcher import UNWATCHED, Listener, Watcher
from vitnas.records import TrialRecord
from vitnas.run import Run
from vitnas.sessions import Data
from vitnas.words import plural

_ENDLESS = 10**9


@dataclass(frozen=True)
class _Start:
    """What a search starts from.

    Attributes:
        first: networks that are trained first.
        known: what other runs found, with their folders.
        data: of these runs, by folder.
    """

    first: tuple[Candidate, ...]
    known: tuple[tuple[Path, Candidate, TrialRecord, tuple[TrialRecord, ...]], ...]
    data: Mapping[Path, Data]


def run_search(
    space: SearchSpace,
    out: str | Path,
    options: SearchOptions,
    watcher: Watcher = UNWATCHED,
) -> Run:
    """Search `space` until `options.trials` trainings have ended; resumes a run that was stopped.

    Args:
        space: what is searched.
        out: the results folder; made if it is not there.
        options: how.
        watcher: who is told how it goes.

    Returns:
        The run as stored, its front scored on the test split.

    Raises:
        RunError: the folder cannot be used, or holds a run of another space or seed; a run to start
            from cannot be compared; no cluster answers.
        ConfigError: a network to train first is not in the space; packages that an objective or a
            limit needs are not installed; the sampler of another package fails.
        DeviceError: a GPU was asked for and there is none.
        DataError: the images are missing or unreadable.
        KeyboardInterrupt: Ctrl-C, once what was running has ended, or at once the second time.
    """
    path = Path(out)
    space = space.for_epochs(options.epochs).at_rate(options.lr)
    check_onnx(space)
    check_proposes(options.sampler, space)
    space, tuned = _known(space, path, options)
    start = _start(space, options, watcher.notice)
    watcher.doing(opening(options))
    with closing(open_backend(options, space.config.data)) as backend:
        watcher.doing(f"reading the images of {space.config.data.called}")
        if tuned is None:
            space, tuned = tuned_recipe(backend, space, path, options, watcher)
        found = backend.prepare(space, options.most_baselines, watcher)
        for folder, data in start.data.items():
            warm_start.check_same_images(folder, data, found.data)
        if tuned is None and (line := why_untuned(space, path, options)):
            watcher.notice(line)
        make_folder(path)
        fixed = session.fixed(space, options) | (tuned or {})
        with locked(path), study.writable(path), closing(study.RunStore(path, fixed)) as store:
            options = session.begin(store, space, options, backend.resources, found)
            searching = _Search(store, space, options, backend, found, start, watcher)
            watcher.doing(searching.outlook())
            searching.run()
        watcher.doing("ending the workers")
    return study.read_run(path)


def _known(space: SearchSpace, path: Path, options: SearchOptions) -> Found:
    """The space with the recipe that the run has tuned, if it can be this run; reads no image.

    Raises:
        RunError: the folder cannot be used, or holds a run of another space or seed.
    """
    check_folder(path)
    space, tuned = known_recipe(space, path, options)
    if (path / study.FILE_NAME).exists():
        study.refuse_other(path, study.read_study(path)[0], session.fixed(space, options))
    if is_locked(path):
        raise in_use(path)
    return space, tuned


def _start(space: SearchSpace, options: SearchOptions, notice: Tell) -> _Start:
    """Find the networks that the search starts from, and open what it writes with."""
    if options.tensorboard:
        from vitnas.training.events import check_package

        check_package()
    first, misfits = warm_start.seed_candidates(space, options.seed_configs, options.num_trials)
    if misfits:
        origin, reason = next(iter(misfits.items()))
        verb = "does" if len(misfits) == 1 else "do"
        lost = f"{plural(len(misfits), 'network')} {verb} not fit"
        told = reason if origin in reason else f"{origin} {reason}"
        notice(f"--seed-configs: {lost}; {told}")
    known, data = [], {}
    for folder in map(Path, options.start_from):
        run = study.read_run(folder)
        data[folder] = run.environment.data
        found = warm_start.known_trials(space, run, stopped=options.pruner != "none")
        known += [(folder, *pair) for pair in found]
    return _Start(first, tuple(known), data)


@dataclass(frozen=True)
class _Search:
    """One session, once its images are read and its study is open for writing."""

    store: study.RunStore
    space: SearchSpace
    options: SearchOptions
    backend: Backend
    found: Findings
    start: _Start
    watcher: Watcher

    def outlook(self) -> str:
        """What is to do, and about how long it takes."""
        num_ended = sum(trial.is_ended_here for trial in self.store.records())
        left = len(untrained(self.store.path, self.found.baselines))
        seconds = self.found.baseline_seconds
        return outlook(
            self.backend.resources.workers,
            self.options.num_trials,
            num_ended,
            self.space.config.proxy.epochs,
            seconds=self.found.training_seconds,
            num_baselines=left,
            baseline_seconds=seconds and seconds * left / len(self.found.baselines),
        )

    def run(self) -> None:
        """Train, score the front on the test images, and train the baselines."""
        for line in self.found.notices:
            self.watcher.notice(line)
        self.watcher.scored_by(self.num_images)
        with self._listening() as listen:
            first, rules = self.start.first, self._rules()
            controller = Controller(self.store, self.space, rules, listener=listen, first=first)
            self._take_over(controller)
            if own := warm_start.told_own(first, controller.trials, rules.num_trials):
                self.watcher.notice(own)
            self._train(controller)
        if self.found.data.num_test_images:
            self.watcher.doing("scoring the front on the test images")
            self._score_front()
        if self.found.baselines:
            self._train_baselines()

    @property
    def costs(self) -> tuple[str, ...]:
        return self.space.config.objectives.costs

    @property
    def num_images(self) -> int:
        """Of the scoring split."""
        return self.found.data.num_val_images or 0

    @cached_property
    def weights(self) -> KeptWeights:
        """The weights that the run keeps: of what may be on the front, and others up to a size."""
        return KeptWeights(self.store.path, self.num_images or None, self.options.kept_bytes)

    @contextmanager
    def _listening(self) -> Iterator[Listener]:
        """The listener, joined by what writes TensorBoard's files where that is asked for."""
        listener = self.watcher.listener
        if not self.options.tensorboard:
            yield listener
            return
        from vitnas.engine.watch.tensorboard import Curves

        with Curves(self.store.path / "tensorboard", self.costs, self.num_images) as curves:

            def both(event: str, trial: TrialRecord) -> None:
                curves.listen(event, trial)
                listener(event, trial)

            yield both

    def _rules(self) -> Rules:
        options = self.options
        return Rules(
            num_trials=options.num_trials or _ENDLESS,
            seed=options.seed,
            sampler=options.sampler,
            pruner=options.make_pruner(self.space.config.proxy.epochs, self.costs),
            budget=options.budget(self.backend.resources.gpus),
            replication=options.replication(self.num_images, self.costs),
        )

    def _take_over(self, controller: Controller) -> None:
        """Enter what other runs found, with the weights that they kept.

        Where this run measures, what was measured on another device cannot be compared. Where an
        earlier session was killed meanwhile, this one makes up for what is missing.
        """
        before = controller.trials
        was_last = bool(before) and before[-1].taken  # then weights may be missing, too
        device, notice = self.found.measured_on, self.watcher.notice
        taken, elsewhere = 0, Counter[str]()
        for folder, candidate, trial, replicates in self.start.known:
            if device and trial.measured_on != device:
                elsewhere[trial.measured_on or "no device"] += 1
                continue
            first_new = len(controller.trials)
            number = controller.take(candidate, trial, replicates)
            if number is None:
                continue
            taken += number >= first_new
            ours = {
                t.seed: t.number for t in controller.trials if number in (t.number, t.replicate_of)
            }
            for theirs in (trial, *replicates):
                here, content = ours[theirs.seed], KeptWeights(folder).get(theirs.number)
                if content is not None and (was_last or here >= first_new):
                    self.weights.put(here, content)
        if self.start.known:
            self.weights.clean(controller.trials, controller.costs)
        if taken:
            notice(f"--start-from: {taken} results taken over")
        for other, count in elsewhere.items():
            measured = f"measured on {other}, not {device}"
            notice(f"--start-from: {count} results not taken over: {measured}")

    def _train(self, controller: Controller) -> None:
        """Let the back end train until nothing is left to start, and note why it ended."""
        minutes = self.options.trial_minutes
        steering = Steering(controller, self.weights, None if minutes is None else 60 * minutes)

        def wind_down() -> None:
            controller.drain()
            running = controller.num_in_flight
            self.watcher.notice(f"finishing what is running ({running}); Ctrl-C again stops now")

        with two_step_interrupt(wind_down) as heard:
            if not controller.done:
                self.backend.train(steering, self.store.path / ".tune")
        stops = controller.is_interrupted or (bool(heard) and bool(self.found.baselines))
        session.note(self.store, ended_by="interrupted" if stops else controller.cut_short_by)
        if stops:
            raise KeyboardInterrupt

    def _train_baselines(self) -> None:
        """Train what the front is compared with."""
        environment, config = self.store.attrs["environment"], self.space.config
        now = environment["sessions"][-1]
        baselines = Baselines(
            self.store.path,
            self.found.baselines,
            config.proxy,
            environment["seed"],
            self.backend.answers,
            shared_cache(config.data, self.found.data, self.found.device, now),
            self.watcher,
            int8=config.objectives.is_int8,
        )
        session.note(self.store, baselines_done=False)
        try:
            if untrained(self.store.path, self.found.baselines):
                self.watcher.searched()
            baselines.train(self._read, self.options.replicates)
        except KeyboardInterrupt:
            session.note(self.store, ended_by="interrupted")
            raise
        session.note(self.store, baselines_done=True)

    def _read(self) -> Run:
        return study.read_run(self.store.path)

    def _score_front(self) -> None:
        """Score each training of the final front's members once on the test split, as far as its
        weights are kept; no other network is scored."""
        tested = self.store.attrs.get("test_top1", {})
        weights, run = KeptWeights(self.store.path), self._read()
        untested = [
            (number, Trained(trial.network, content, str(weights.path(number))))
            for trial in run.front
            for number in run.trainings_of(trial)
            if str(number) not in tested and (content := weights.get(number)) is not None
        ]
        scores = self.backend.score([network for _, network in untested]) if untested else []
        for (number, _), top1 in zip(untested, scores, strict=True):
            self.store.describe_ended(number, "test_top1", round(top1, 4))
