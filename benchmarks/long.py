"""Trained for long, is a front still better than its baselines? For the run of a search.

`python benchmarks/long.py RUN`: baselines of the run that no smaller one beats on the scoring
images, evenly over FLOPs, and for each of them the best network of the front with no more FLOPs.
Both are chosen by the run's short trainings. Each is trained from nothing for `--epochs` by the
run's recipe, a baseline at the learning rate that the run found for it, with several seeds, one
core each, and scored once on the run's test images. `--recipe` changes fields of that recipe; a
learning rate is then everybody's. `--whole` trains on the scoring images, too. A quick run searches
scikit-learn's digits first.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from by_hand import Given, Tried, tried
from common import ROOT, Bound, conclude, fresh_process, quick_parser, rounded, show

from vitnas.config.files import validate
from vitnas.config.notation import human
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.config.training import ProxyConfig
from vitnas.engine.store.study import read_run
from vitnas.errors import RunError, VitnasError
from vitnas.pareto import front
from vitnas.records import BaselineRecord, TrialRecord
from vitnas.run import Run

EPOCHS, SEEDS, PAIRS = 40, 3, 3


class Pair(NamedTuple):
    """A network of the front, and a baseline of at least its FLOPs."""

    ours: TrialRecord
    theirs: BaselineRecord


class Trained(NamedTuple):
    """A network, and how it is trained."""

    given: Given
    proxy: ProxyConfig


def pairs(run: Run, most: int) -> list[Pair]:
    """At most `most` of them, from the first to the last one evenly; one alone is the last."""
    known = sorted((one for one in run.baselines if one.top1), key=lambda one: one.flops)
    best = [known[index] for index in front([(-(one.top1 or 0.0), one.flops) for one in known])]
    found = []
    for theirs in sorted(best, key=lambda one: one.flops):
        fits = [one for one in run.front if one.flops <= theirs.flops]
        if fits:
            found.append(Pair(max(fits, key=lambda one: one.estimate or 0.0), theirs))
    steps = max(1, min(most, len(found)) - 1)
    places = {round(k * (len(found) - 1) / steps) for k in range(most)} if most > 1 else {-1}
    return [found[place] for place in sorted(places)] if found else []


def names(pair: Pair) -> tuple[str, str]:
    """Of ours and theirs."""
    return f"trial {pair.ours.number}", f"{pair.theirs.family}-{pair.theirs.width}"


def networks(chosen: Sequence[Pair], proxy: ProxyConfig, lr: float | None) -> dict[str, Trained]:
    """By name, each with its recipe; a network that is in two pairs is trained once.

    `lr`: that all are trained at; None = the proxy's, and a baseline's own.
    """
    found: dict[str, Trained] = {}
    for pair in chosen:
        ours, theirs = names(pair)
        found[ours] = Trained(pair.ours.network.model_dump(), proxy)
        own = proxy.at_rate(lr or pair.theirs.lr or proxy.lr)
        found[theirs] = Trained((pair.theirs.family, pair.theirs.width), own)
    return found


def space_of(run: Path) -> SearchSpace:
    """The space that the run searched."""
    return SearchSpace(validate(SpaceConfig, dict(read_run(run).space)))


def recipe_of(run: Path, changes: dict[str, Any]) -> ProxyConfig:
    """The run's recipe with these changes; its schedule keeps its shape.

    Raises:
        RunError: no such run.
        ConfigError: a change that no recipe can have.
    """
    own = space_of(run).config.proxy.for_epochs(changes["epochs"])
    return validate(ProxyConfig, {**own.written(), **changes})


def train(asked: Trained, run: Path, whole: bool, seed: int) -> Tried:
    """One training of one network, in a process of its own; `whole`: on all images but test.

    Raises:
        RunError: it diverges.
    """
    import torch

    from vitnas.training.data import load_data
    from vitnas.training.score import Diverged

    torch.set_num_threads(1)
    (given, proxy), space = asked, space_of(run)
    data, side = space.config.data, max(space.image_sizes())
    if whole:
        data = data.model_copy(update={"val_split": "test", "val_fraction": 0.0})
    try:
        return tried(given, [seed], load_data(data, side, proxy.train_fraction), proxy)
    except Diverged as error:
        what = "-".join(map(str, given)) if isinstance(given, tuple) else "one of the front"
        raise RunError(f"{what}, seed {seed}: diverged ({error}); take another --recipe") from None


def end_with_parent() -> None:
    """End this process when its parent has ended, killed too: a training takes many minutes."""

    def watch() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def all_trained(run: Path, asked: Sequence[Trained], whole: bool, seeds: int) -> list[Tried]:
    """Each network with each seed; a process a core. Each training is told when it ends."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), end_with_parent) as pool:
        runs = [
            [pool.submit(train, one, run, whole, seed) for seed in range(seeds)] for one in asked
        ]
        for future in as_completed(one for own in runs for one in own):
            ended = future.result()
            print(f"{human(ended.flops)} FLOPs: {ended.mean:.2f} on test", flush=True)
        found = [[one.result() for one in own] for own in runs]
    return [Tried(own[0].flops, [top1 for one in own for top1 in one.top1]) for own in found]


def told(name: str, one: Tried, short: float | None) -> tuple[str, ...]:
    """A row of the table."""
    before = "-" if short is None else f"{short:.2f}"
    return name, human(one.flops), before, f"{one.mean:.2f}", f"{one.error:.2f}"


def compared(
    run: Path,
    proxy: ProxyConfig,
    whole: bool,
    seeds: int,
    most: int,
    lr: float | None = None,
) -> dict[str, float | str | list[str]]:
    """Train the pairs, print their table, and tell by how many points ours are above theirs.

    `lr`: see `networks`.
    """
    chosen = pairs(read_run(run), most)
    if not chosen:
        raise RunError(f"{run}: has no baseline with the FLOPs of a network of its front")
    asked = networks(chosen, proxy, lr)
    trained = all_trained(run, list(asked.values()), whole, seeds)
    found = dict(zip(asked, trained, strict=True))
    both = [(found[ours], found[theirs]) for ours, theirs in map(names, chosen)]
    rows = []
    for pair in chosen:
        for name, one in zip(names(pair), pair, strict=True):
            rows.append(told(name, found[name], one.mean_test_top1))
    show(("network", "FLOPs", "test top-1, short", "long", "error"), rows)
    gains = [ours.mean - theirs.mean for ours, theirs in both]
    times = Counter(name for pair in chosen for name in names(pair))
    squares = sum((count * found[name].error) ** 2 for name, count in times.items())
    return {
        "networks": [row[0] for row in rows],
        "points": [f"{gain:+.2f}" for gain in gains],
        "mean_points": rounded(statistics.fmean(gains)),
        "error": rounded(squares**0.5 / len(gains)),
        "least_points": rounded(min(gains)),
    }


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a search with baselines")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of each training")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of each network")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of a network and a baseline")
    parser.add_argument("--recipe", type=json.loads, default={}, help="JSON, over the run's own")
    parser.add_argument("--whole", action="store_true", help="train on all images but test")
    asked = parser.parse_args()
    if asked.quick:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            fresh_process(str(ROOT / "search.py"), "digits", "--out", str(run), "--trials", "6")
            figures = compared(run, recipe_of(run, {"epochs": 1}), True, 1, 1)
    elif asked.run is None:
        parser.error("RUN is needed")
    else:
        changes = {**asked.recipe, "epochs": asked.epochs}
        try:
            proxy = recipe_of(asked.run, changes)
            lr = asked.recipe.get("lr")
            found = compared(asked.run, proxy, asked.whole, asked.seeds, asked.pairs, lr)
        except VitnasError as error:
            parser.error(str(error))
        figures = {**changes, "whole": asked.whole, **found}
    targets: dict[str, Bound] = {"mean_points": {"min": -100.0 if asked.quick else 0.0}}
    conclude("long", asked.quick, figures, targets)


if __name__ == "__main__":
    main()
