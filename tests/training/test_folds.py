"""Several trainings of one network, each scored on other images."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from tests.config.test_baseline import DIGITS
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.seeds import derive_seed
from vitnas.training.images import Images
from vitnas.training.proxy import ProxyTraining
from vitnas.training.subject import training_of

SHORT = ProxyConfig(epochs=2, batch_size=128, train_fraction=0.3)


def test_an_epoch_is_the_mean_over_the_folds(tiny_config: ModelConfig, digits: Images) -> None:
    """Fold 0 is the training that one fold gives; each other has its own seed and images."""
    seeds = [5, derive_seed(5, "fold", 1), derive_seed(5, "fold", 2)]
    alone = [
        list(ProxyTraining(tiny_config, SHORT, digits.fold(number), seed))
        for number, seed in enumerate(seeds)
    ]
    together = list(training_of(tiny_config, SHORT, replace(digits, folds=3), 5))
    for number, epoch in enumerate(together):
        assert epoch.epoch == number + 1
        assert epoch.top1 == fmean(one[number].top1 for one in alone)
        assert epoch.loss == fmean(one[number].loss for one in alone)
        assert epoch.log_likelihood == fmean(one[number].log_likelihood for one in alone)


def test_the_weights_are_those_of_the_first_fold(digits: Images) -> None:
    folded = training_of(DIGITS, SHORT, replace(digits, folds=2), 0)
    single = training_of(DIGITS, SHORT, digits, 0)
    for _ in zip(folded, single, strict=True):
        pass
    theirs = single.model.state_dict()
    assert all(
        bool((value == theirs[name]).all()) for name, value in folded.model.state_dict().items()
    )
    assert folded.counted() is folded.model
    assert single.counted() is single.model
