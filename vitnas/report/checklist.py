"""The NAS checklist, answered from what a run knows of itself.

Lindauer and Hutter (2020), Best Practices for Scientific Research on Neural Architecture Search,
Journal of Machine Learning Research 21(243): the items of its checklist, in its order and in short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from vitnas.engine.samplers import SAMPLERS
from vitnas.records import Outcome
from vitnas.report.progress import is_random_search, volume_curve
from vitnas.report.text import duration_text, plural
from vitnas.report.whole_cost import clock_seconds, costs_of
from vitnas.run import Run

YES, PARTLY, NO, UNKNOWN = "yes", "partly", "no", "cannot be known from here"


class Item(NamedTuple):
    """An item of the checklist and what the run says to it.

    Attributes:
        group: `code`, `comparisons` or `details`.
        item: what is asked.
        answer: `YES`, `PARTLY`, `NO` or `UNKNOWN`.
        why: the facts.
    """

    group: str
    item: str
    answer: str
    why: str


def checklist(run: Run) -> list[Item]:
    """All items; each has an answer for any run, also for an empty one."""
    return [Item(group, item, *answer(run)) for group, item, answer in _ITEMS]


_Found = tuple[str, str]


def _code(run: Run) -> _Found:
    versions, revisions = run.environment.last.versions, _revisions(run)
    version = f"vitnas {versions['vitnas']}" if versions.get("vitnas") else ""
    if not version and not revisions:
        return UNKNOWN, "the run does not say which version of vitnas made it"
    revised = f"git {', '.join(revisions)}" if revisions else ""
    told = ", ".join(filter(None, (version, revised)))
    if any(revision.endswith("+") for revision in revisions):
        return NO, f"{told}: files differed from the revision with +; commit them before a run"
    return YES, f"{told}; whether your own files are public is not known here"


def _space(run: Run) -> _Found:
    return (YES, "space.yaml in this folder") if run.space else (NO, "the run has no space")


def _recipe(run: Run) -> _Found:
    if not run.environment.proxy.told():
        return NO, "the run does not say how its networks were trained"
    return PARTLY, (
        "the short training is in space.yaml, its seeds are in trials.csv; a long training of "
        "a chosen network is not part of a search and writes its own"
    )


def _method(run: Run) -> _Found:
    samplers = _different(session.sampler for session in run.environment.sessions)
    answer, why = _code(run)
    foreign = [name for name in samplers if name not in SAMPLERS]
    if foreign:
        return UNKNOWN, f"the sampler {', '.join(foreign)} is another package's"
    named = f"sampler {', '.join(samplers)}; " if samplers else ""
    return answer, f"{named}{why}"


def _settings(run: Run) -> _Found:
    told = run.environment
    if told.seed is None or told.last.command is None:
        missing = ["seed"] * (told.seed is None) + ["command"] * (told.last.command is None)
        return NO, f"not recorded: {' and '.join(missing)}"
    return YES, f"seed {told.seed}; the command of each session is below"


def _same_benchmark(run: Run) -> _Found:
    trained = sum(one.outcome is Outcome.COMPLETE for one in run.baselines)
    if not trained:
        return NO, "nothing is compared: no baseline was trained to the end"
    baselines = plural(trained, "baseline")
    rates = "; each family at its own learning rate" if any(b.rates for b in run.baselines) else ""
    return YES, f"{baselines}: the same images, recipe and code as the trials{rates}"


def _confounders(run: Run) -> _Found:
    devices = sorted({t.device for t in (*run.trials, *run.replicates) if t.device})
    sessions = [session.versions for session in run.environment.sessions if session.versions]
    names = sorted({name for versions in sessions for name in versions})
    changed = [name for name in names if len({one.get(name) for one in sessions}) > 1]
    if not devices or not sessions:
        return UNKNOWN, "devices or versions are not recorded"
    parts = [f"devices: {', '.join(devices)}"] * (len(devices) > 1)
    revisions = _revisions(run)
    parts += [f"git revisions of the sessions: {', '.join(revisions)}"] * (len(revisions) > 1)
    parts += [f"versions that changed between sessions: {', '.join(changed)}"] * bool(changed)
    return (NO, "; ".join(parts)) if parts else (YES, f"one device ({devices[0]}), same versions")


def _ablations(run: Run) -> _Found:
    return NO, "one run is no ablation of its method; `vitnas report A B` compares runs"


def _protocol(run: Run) -> _Found:
    compared = [*run.front, *(b for b in run.baselines if b.outcome is Outcome.COMPLETE)]
    tested = sum(bool(one.test_trainings) for one in compared)
    if not compared:
        return NO, "nothing was trained to the end"
    if tested == len(compared):
        who = "front and baselines are" if len(compared) > len(run.front) else "the front is"
        return YES, f"{who} scored on the same test images, after the search"
    return NO, f"{tested} of {len(compared)} networks have a test score"


def _over_time(run: Run) -> _Found:
    if len(volume_curve(run)) < 2:
        return NO, "fewer than two complete trials"
    return YES, "the section on how the front grew"


def _random(run: Run) -> _Found:
    if is_random_search(run):
        return YES, "this run is a random search"
    return NO, ("no random search in this run; make one with `--sampler random` in another folder")


def _runs(run: Run) -> _Found:
    seed = "" if run.environment.seed is None else f", seed {run.environment.seed}"
    again = sum(bool(trial.replicates) for trial in run.complete)
    more = f"; {plural(again, 'network')} trained with several seeds" if again else ""
    return NO, f"one run{seed}{more}"


def _tabular(run: Run) -> _Found:
    return NO, "networks were trained; `vitnas replay` searches recorded ones"


def _tuning(run: Run) -> _Found:
    if run.environment.tuned:
        return YES, f"tuned before the first trial: {run.environment.tuned}"
    return UNKNOWN, "the recipe was given; how it was found is not recorded"


def _whole_time(run: Run) -> _Found:
    costs, clock = costs_of(run), clock_seconds(run)
    if not any(one.seconds for one in costs):
        return NO, "no times are recorded"
    rest = "proposals and waiting" if clock is None else "test scores"
    by_clock = "" if clock is None else f", {duration_text(clock)} by the clock"
    return PARTLY, (
        f"{duration_text(costs[-1].seconds)} in trainings, those of replicates, baselines and "
        f"tuning included{by_clock}; {rest} are not timed"
    )


def _setup(run: Run) -> _Found:
    told = run.environment
    facts = {
        "data": told.data.name,
        "recipe": told.proxy.told(),
        "hardware": told.last.hardware.cpu or told.last.device,
        "versions": told.last.versions,
    }
    missing = [name for name, value in facts.items() if not value]
    if missing:
        return NO, f"not recorded: {', '.join(missing)}"
    return YES, f"{', '.join(facts)}: below"


def _revisions(run: Run) -> list[str]:
    """The different git revisions of the sessions."""
    return _different(session.git_revision for session in run.environment.sessions)


def _different(texts: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


_ITEMS: tuple[tuple[str, str, Callable[[Run], _Found]], ...] = (
    ("code", "Code of the training by which networks are judged", _code),
    ("code", "Code of the search space", _space),
    ("code", "Hyperparameters and seeds of that training", _recipe),
    ("code", "Code of the search method", _method),
    ("code", "Hyperparameters and seeds of the search method", _settings),
    ("comparisons", "Same data, splits, space and training code for all that is compared",
     _same_benchmark),
    ("comparisons", "Confounding factors controlled: hardware, versions", _confounders),
    ("comparisons", "Ablation studies", _ablations),
    ("comparisons", "Same evaluation protocol for all that is compared", _protocol),
    ("comparisons", "Performance over time", _over_time),
    ("comparisons", "Random search as a baseline", _random),
    ("comparisons", "Several runs, and their seeds", _runs),
    ("comparisons", "Tabular or surrogate benchmarks", _tabular),
    ("details", "How hyperparameters were tuned, and what that took", _tuning),
    ("details", "Time of the whole method, end to end", _whole_time),
    ("details", "All details of the setup", _setup),
)  # fmt: skip
