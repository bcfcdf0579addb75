"""A trial's network in one line, and the token mixer that gives it its mark in plots."""

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


def widest_mixer(trial: TrialRecord) -> str:
    """The token mixer of the widest reach, which gives a network its mark.

    It is one that mixes all tokens, if the network has one; else one that mixes neighbours. Of
    several, it is the one that runs most often (blocks x passes), in a tie that of the earlier
    stage.
    """
    config = config_of(trial)
    if config is None:
        return UNKNOWN
    runs: Counter[str] = Counter()
    for stage in config.stages:
        for mixer in stage.mixers:
            runs[mixer] += stage.passes
    return max(runs, key=lambda mixer: (_reach(mixer), runs[mixer]))


def _reach(mixer: str) -> int:
    """2 for all tokens or groups of them, 1 for neighbours, 0 for none."""
    facts = mixer_named(mixer).facts
    if facts.skips or facts.groups == "ignored":
        return 0
    return 1 if facts.grid else 2


def config_of(trial: TrialRecord) -> ModelConfig | None:
    """A trial's network; None if its stored configuration is no longer valid."""
    try:
        return trial.network if trial.config else None
    except VitnasError:
        return None
