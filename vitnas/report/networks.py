"""A trial's network in one line, and the token mixer that gives its mark in plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vitnas.config.mixers import mixer_named
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line, one_lines, whole_lines
from vitnas.errors import VitnasError
from vitnas.records import TrialRecord

UNKNOWN = "unknown"


def network_line(trial: TrialRecord) -> str:
    """`2x dwconv 32 > 3x mhsa 64 h2`, or words if the stored configuration is no longer valid."""
    config = config_of(trial)
    return _unknown(trial) if config is None else one_line(config)


def network_lines(trials: Sequence[TrialRecord], *, whole: bool = False) -> list[str]:
    """The same for trials in one list, without what holds for every network of it; with that where
    the lines are `whole`. Where image sizes differ, each line tells its own."""
    configs = [config_of(trial) for trial in trials]
    known = [config for config in configs if config is not None]
    lines = iter(whole_lines(known) if whole else one_lines(known))
    pairs = zip(trials, configs, strict=True)
    return [_unknown(trial) if config is None else next(lines) for trial, config in pairs]


def _unknown(trial: TrialRecord) -> str:
    return f"unreadable configuration {trial.key}" if trial.config else "not recorded"


def dominant_mixer(trial: TrialRecord) -> str:
    """The token mixer that runs most often (blocks x passes). In a tie the earlier stage wins.

    A skipped stage runs nothing, so it counts only in a network without any block.
    """
    config = config_of(trial)
    if config is None:
        return UNKNOWN
    runs: Counter[str] = Counter()
    for stage in config.stages:
        for mixer in stage.mixers:
            runs[mixer] += 0 if mixer_named(mixer).facts.skips else stage.passes
    return runs.most_common(1)[0][0]


def config_of(trial: TrialRecord) -> ModelConfig | None:
    """A trial's network; None if its stored configuration is no longer valid."""
    try:
        return trial.network if trial.config else None
    except VitnasError:
        return None
