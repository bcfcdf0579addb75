"""What a search may start from: model files of the papers or one's own, and other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from vitnas.config.costs import COSTS
from vitnas.config.differences import changed_images, differences
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.engine.decide.locate import Candidate, locate, locate_by
from vitnas.engine.decide.plain import plain_networks
from vitnas.errors import ConfigError, RunError, nearest_name
from vitnas.files import exists
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run
from vitnas.sessions import Data

_SHARE = 3
"""Of a run's trials, one in so many may be a network that the space's file names."""

_OWN = "seed_configs"  # where such a network comes from begins with this


def seed_candidates(
    space: SearchSpace, names: Sequence[str], trials: int | None = None
) -> tuple[tuple[Candidate, ...], dict[str, str]]:
    """The networks to train first.

    Args:
        space: what is searched.
        names: model files, names of the zoo, results folders (their fronts), `zoo` for all of the
            papers' models, `plain` (see `vitnas.engine.decide.plain`), `own` for the space's
            `seed_configs`, or `none` for nothing.
        trials: that the run shall have; of the space's own networks no more than a third of them
            are trained, evenly over the file's order. None = no bound.

    Returns:
        The networks that the space can draw, each once; and the reasons why others of `zoo` or of a
        folder do not fit.

    Raises:
        ConfigError: the space cannot draw a file or model that was named, or it does not exist.
        RunError: a folder is no run.
    """
    found: dict[str, Candidate] = {}
    misfits: dict[str, str] = {}
    for name in names:
        fitting = []
        for origin, network, is_one_of_many in _named(space, name):
            try:
                fitting.append(locate(space, network(), origin))
            except ConfigError as error:
                if not is_one_of_many:
                    raise
                misfits[origin] = str(error).removeprefix(f"{origin}: ")
        if name == "own" and trials is not None:
            fitting = _evenly(fitting, trials // _SHARE)
        for candidate in fitting:
            found.setdefault(candidate.key, candidate)
    return tuple(found.values()), misfits


def told_own(
    first: Sequence[Candidate], trials: Iterable[TrialRecord], num_trials: int
) -> str | None:
    """What a search says where it begins with networks that its space names; None where none of
    them is left to train.

    Args:
        first: what is trained first, in this order.
        trials: that the run has; those in training were lost with an earlier session.
        num_trials: that it shall have.
    """
    ended = [trial for trial in trials if trial.outcome is not Outcome.RUNNING]
    num_ended = sum(trial.is_ended_here for trial in ended)
    known, left = {trial.key for trial in ended}, max(0, num_trials - num_ended)
    new = [candidate.origin for candidate in first if candidate.key not in known][:left]
    own = sum(origin.startswith(_OWN) for origin in new)
    if not own:
        return None
    which = "next" if num_ended else "first"
    noun = f"{len(new)} trials" if len(new) > 1 else "trial"
    some = "" if own == len(new) else f"{own} of "
    are = "is one of the" if own == 1 else "are"
    name = "networks that the space names (--seed-configs none leaves them out)"
    return f"{some}the {which} {noun} {are} {name}"


def _evenly(some: list[Candidate], number: int) -> list[Candidate]:
    """At most `number` of them, evenly over their order; with two or more both ends."""
    if number >= len(some):
        return some
    if number < 2:
        return some[len(some) // 2 :][:number]
    return [some[round(k * (len(some) - 1) / (number - 1))] for k in range(number)]


def known_trials(
    space: SearchSpace, run: Run, *, stopped: bool = True
) -> list[tuple[Candidate, TrialRecord, tuple[TrialRecord, ...]]]:
    """Complete and stopped trials of another run whose networks are in this space, too, each with
    its replicates.

    Args:
        space: what is searched.
        run: trained on the same data by the same proxy.
        stopped: whether early-stopped ones count; False for a search without pruning.

    Raises:
        RunError: data or proxy differ, so that accuracies cannot be compared. Whether the images
            are the same is not seen here (see `check_same_images`).
    """
    _check_comparable(space, run)
    wanted = {Outcome.COMPLETE, Outcome.STOPPED} if stopped else {Outcome.COMPLETE}
    replicates: dict[int | None, list[TrialRecord]] = {}
    for again in run.replicates:
        if again.outcome.is_trial:
            replicates.setdefault(again.replicate_of, []).append(again)
    known = []
    for trial in run.trials:
        if trial.outcome in wanted:
            origin = f"{run.path}, trial {trial.number}"
            try:
                candidate = _again(space, trial, origin)
            except ConfigError:
                continue
            known.append((candidate, trial, tuple(replicates.get(trial.number, ()))))
    return known


def check_same_images(folder: Path, theirs: Data, ours: Data) -> None:
    """Make sure that a run to start from was trained on the images of this search, if it says so.

    Args:
        folder: of the run.
        theirs, ours: the images of both.

    Raises:
        RunError: it was trained on others.
    """
    stored, here = (data.told().get("fingerprint") for data in (theirs, ours))
    changes = changed_images(stored, here) if stored and here else []
    if changes:
        raise RunError(
            f"--start-from {folder}: its accuracies cannot be compared: it was trained on other "
            f"images: {'; '.join(changes)}; --seed-configs {folder} trains its front again first"
        )


def _again(space: SearchSpace, trial: TrialRecord, origin: str) -> Candidate:
    """Find the network of a trial; with the trial's own answers if the questions are the same.

    Raises:
        ConfigError: the space has no such network.
    """
    config = trial.network
    same = locate_by(space, trial.params, origin)
    candidate = same if same and same.key == config.key else locate(space, config, origin)
    if candidate.key != config.key:
        raise ConfigError("is in the space only with other data or rates", file=origin)
    return candidate


def _check_comparable(space: SearchSpace, run: Run) -> None:
    theirs = validate(SpaceConfig, dict(run.space), file=run.path)
    said = {"root", "recipe", *COSTS}  # another folder, another name, or against other costs
    for name in ("data", "proxy", "objectives"):
        old = getattr(theirs, name).model_dump(mode="json", exclude=said)
        new = getattr(space.config, name).model_dump(mode="json", exclude=said)
        changes = list(differences(old, new, name))
        if changes:
            raise RunError(
                f"--start-from {run.path}: its accuracies cannot be compared: {changes[0]}; "
                f"--seed-configs {run.path} trains its front again first"
            )


def _named(space: SearchSpace, name: str) -> Iterable[tuple[str, Callable[[], ModelConfig], bool]]:
    """(origin, what gives its configuration, whether it is one of many) of what a user named."""
    from vitnas.engine.store.study import FILE_NAME, read_run
    from vitnas.nn.zoo.names import zoo_config, zoo_names

    if name == "none":
        return []
    if name == "own":
        places = range(len(space.config.seed_configs))
        return [(f"{_OWN}[{n}]", partial(space.seed_network, n), True) for n in places]
    if name == "plain":
        return [("plain", partial(_same, config), True) for config in plain_networks(space)]
    if name == "zoo":
        return [(model, partial(zoo_config, model), True) for model in zoo_names()]
    if name in zoo_names():
        return [(name, partial(zoo_config, name), False)]
    if exists(Path(name) / FILE_NAME):
        run = read_run(name)
        return [(f"{name}, trial {t.number}", partial(_same, t.network), True) for t in run.front]
    if not Path(name).suffix and not exists(name):
        rule = "no such file, run or model of the zoo"
        nearest = nearest_name(name, ["own", "none", "plain", "zoo", *zoo_names()])
        raise ConfigError(rule, address="--seed-configs", value=name, nearest=nearest)
    return [(name, partial(load_config, name), False)]


def _same(config: ModelConfig) -> ModelConfig:
    return config
