"""Searches for other objectives: what is stored, refused, proposed and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from tests.engine.conftest import SMALL, make_space, start, train
from vitnas.config.objectives import Bounds, Limits
from vitnas.config.space import SearchSpace
from vitnas.config.trials import RandomTrial
from vitnas.engine.backends.prepare import prepare_worker
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import measured_name
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision, EpochDone, Job, Measured
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.pruning.pareto import FrontRank, ParetoPruner
from vitnas.engine.samplers.ehvi import EHVISampler
from vitnas.engine.samplers.pool import SpacePool
from vitnas.engine.search import run_search
from vitnas.engine.store.study import FILE_NAME, STUDY_NAME, read_run
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import ConfigError, RunError
from vitnas.records import Outcome
from vitnas.run import Run

Make = Callable[..., Controller]
THREE = {"top1": "maximize", "latency_ms": "minimize", "num_params": "minimize"}


def latency(job: Job) -> float:
    """A stand-in for a measurement: depth and passes take time, width does not."""
    (stage,) = job.config.stages
    return 0.1 * stage.depth * stage.passes


def measure(controller: Controller, job: Job) -> Decision:
    memory = job.config.stages[0].embed_dim / 1000
    costs = {"latency_ms": latency(job), "peak_memory_mb": memory}
    costs["throughput"] = 64e3 / latency(job)
    return controller.measured(job.number, costs, "a card")


def search_all(controller: Controller) -> None:
    while (job := controller.next()) is not None:
        if measure(controller, job) is Decision.CONTINUE:
            train(controller, job)


def test_the_study_has_the_objectives_and_their_names(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(make_space(objectives=THREE), num_trials=12)
    search_all(controller)
    controller.store.close()
    study = optuna.load_study(study_name=STUDY_NAME, storage=f"sqlite:///{tmp_path / FILE_NAME}")
    assert [way.name for way in study.directions] == ["MAXIMIZE", "MINIMIZE", "MINIMIZE"]
    assert study.metric_names == ["top1", "num_params", "latency_ms"]
    run = read_run(tmp_path)
    assert run.costs == ("num_params", "latency_ms")
    for trial in run.complete:
        assert study.trials[trial.number].values == [trial.top1, *trial.costs(run.costs)]
        assert trial.measured_on == "a card"
    best = {trial.number for trial in study.best_trials}
    assert {trial.number for trial in run.front} == best
    assert run.knee in run.front


def test_a_maximised_cost_is_stored_as_one(controller_of: Make, tmp_path: Path) -> None:
    """Optuna's own front is ours; what is too slow is refused for its limit."""
    fast = {"top1": "maximize", "flops": "minimize", "throughput": "maximize"}
    space = make_space(objectives=fast, limits={"throughput": {"min": 250e3}})
    search_all(controller_of(space, num_trials=10))
    study = optuna.load_study(study_name=STUDY_NAME, storage=f"sqlite:///{tmp_path / FILE_NAME}")
    assert [way.name for way in study.directions] == ["MAXIMIZE", "MINIMIZE", "MAXIMIZE"]
    run = read_run(tmp_path)
    best = {tuple(trial.values) for trial in study.best_trials}
    assert {(t.top1, *t.costs(run.costs)) for t in run.front} == best
    assert all(trial.measured["throughput"] >= 250e3 for trial in run.complete)
    refused = [str(t.error) for t in run.trials if t.outcome is Outcome.REFUSED]
    assert refused
    assert all("below the limit 250,000 images/s" in error for error in refused)


def test_over_a_measured_limit_costs_no_training(controller_of: Make, tmp_path: Path) -> None:
    space = make_space(limits={"latency_ms": {"max": 0.25}})
    search_all(controller_of(space, num_trials=6))
    run = read_run(tmp_path)
    refused = [t for t in run.trials if t.outcome is Outcome.REFUSED]
    assert refused
    assert all("latency_ms" in str(t.error) and "limit 0.250 ms" in str(t.error) for t in refused)
    assert all(not t.curve and t.measured for t in refused)
    assert len(run.complete) == 6
    keys = [t.key for t in run.trials if t.outcome is not Outcome.DUPLICATE]
    again = controller_of(space, num_trials=8)
    search_all(again)
    later = [t.key for t in again.trials if t.outcome is not Outcome.DUPLICATE]
    assert len(set(later)) == len(later) > len(keys)  # nothing is measured twice


def test_a_limit_that_nothing_meets_ends_the_search(
    controller_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.engine.decide.controller.MAX_IN_VAIN", 30)
    space = make_space(limits={"latency_ms": {"max": 1.0e-3}})
    controller = controller_of(space, num_trials=6, sampler="random")
    search_all(controller)
    assert controller.cut_short_by == "30 networks in a row were measured outside the limits"
    assert controller.done
    assert sum(t.outcome is Outcome.REFUSED for t in controller.trials) <= 30


def test_a_resumed_training_is_measured_again(controller_of: Make) -> None:
    space = make_space(objectives=THREE)
    first = controller_of(space)
    job = start(first)
    first.measured(job.number, {"latency_ms": 5.0}, "another card")
    first.store.close()
    second = controller_of(space)
    again = second.next()
    assert again == job
    measure(second, again)
    train(second, again)
    assert second.trials[job.number].measured_on == "a card"


def test_a_replicate_costs_what_its_network_does(controller_of: Make, tmp_path: Path) -> None:
    """A second measurement would differ by its noise, and could be over a limit."""
    space = make_space(objectives=THREE, limits={"latency_ms": {"max": 0.85}})
    controller = controller_of(space, num_trials=6, replication=Replication(1, 400))
    while (job := controller.next()) is not None:
        original = controller.trials[job.number].replicate_of
        assert job.again is (original is not None)
        if job.again or measure(controller, job) is Decision.CONTINUE:
            train(controller, job)
    run = read_run(tmp_path)
    assert run.replicates
    by_number = {trial.number: trial for trial in run.trials}
    for again in run.replicates:
        assert again.outcome is Outcome.COMPLETE
        assert again.replicate_of is not None
        first = by_number[again.replicate_of]
        assert again.costs(run.costs) == first.costs(run.costs)
        assert again.measured_on == "a card"


@pytest.mark.parametrize("again", [False, True])
def test_a_worker_measures_a_network_once(again: bool) -> None:
    space = make_space(objectives=THREE)
    _, worker = prepare_worker(space, Resources(1, 0.0, 1))
    messages = list(worker.settle().run(Job(0, space.suggest(RandomTrial(0)), 0, again=again)))
    epochs = space.config.proxy.epochs
    done = [message.epoch for message in messages if isinstance(message, EpochDone)]
    assert done == [*range(1, epochs + 1)]
    assert isinstance(messages[0], Measured) is not again
    assert len(messages) == epochs + (not again)


def test_another_runs_figures_are_taken_whole_or_not_at_all(controller_of: Make) -> None:
    from vitnas.engine.decide.locate import Candidate

    controller = controller_of(make_space(objectives=THREE), num_trials=3)
    search_all(controller)
    done = controller.trials[0]
    controller.store.close()
    (controller.store.path / FILE_NAME).unlink()
    other = controller_of(make_space(objectives=THREE), num_trials=3)
    candidate = Candidate("a run", done.params, done.key)
    assert other.take(candidate, replace(done, measured={})) is None
    number = other.take(candidate, done)
    assert number is not None
    taken = other.trials[number]
    assert (taken.measured, taken.measured_on, taken.taken) == (done.measured, "a card", True)


def test_a_measured_cost_counts_when_trials_are_stopped() -> None:
    from tests.report.runs import trial

    pruner = ParetoPruner((FrontRank((1,), min_peers=1),), ("latency_ms",))
    fast = trial(0, 60.0, 9, measured={"latency_ms": 1.0})
    slow = trial(1, 50.0, 1, measured={"latency_ms": 2.0})
    assert pruner.should_stop(replace(slow, curve=slow.curve[:1]), [fast])
    assert not ParetoPruner(pruner.rules).should_stop(replace(slow, curve=slow.curve[:1]), [fast])


def test_a_maximised_cost_counts_the_other_way_when_trials_are_stopped() -> None:
    from tests.report.runs import trial

    pruner = ParetoPruner((FrontRank((1,), min_peers=1),), ("throughput",))
    fast = trial(0, 60.0, 9, measured={"throughput": 200.0})
    slow = trial(1, 50.0, 1, measured={"throughput": 100.0})
    worst = replace(fast, curve=(10.0,), number=2)
    assert pruner.should_stop(replace(slow, curve=slow.curve[:1]), [fast])
    assert not pruner.should_stop(worst, [slow])  # none is as fast


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(latency_ms=Bounds(max=0.25)), Limits(throughput=Bounds(min=250e3))],
)
def test_ehvi_learns_what_is_measured(controller_of: Make, limits: Limits) -> None:
    """Half of the space's networks are over the limit; it soon proposes few of them."""

    def sampler(name: str, seed: int, space: SearchSpace) -> optuna.samplers.BaseSampler:
        costs = space.config.objectives.costs
        return EHVISampler(SpacePool(space, 0), 0, startup=6, costs=costs, limits=limits)

    objectives = THREE if limits.throughput == Bounds() else THREE | {"throughput": "maximize"}
    space = make_space(objectives=objectives, limits=limits.model_dump(exclude_defaults=True))
    controller = controller_of(space, num_trials=20, samplers=sampler)
    search_all(controller)
    assert sum(t.outcome is Outcome.COMPLETE for t in controller.trials) == 20
    if limits == Limits():
        assert all(t.outcome is Outcome.COMPLETE for t in controller.trials)
    else:
        late = [t for t in controller.trials[12:] if t.key]
        refused = sum(t.outcome is Outcome.REFUSED for t in late)
        assert refused <= len(late) / 3


def essence(run: Run) -> list[tuple[object, ...]]:
    return [(t.number, t.outcome, t.key, t.seed, t.curve) for t in run.trials]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
def test_both_back_ends_measure(tmp_path: Path) -> None:
    """A real search on digits; its curves are those of a search that measures nothing."""
    space = make_space(objectives=THREE)
    options = replace(SMALL, sampler="random")
    plain = run_search(make_space(), tmp_path / "plain", options)
    serial = run_search(space, tmp_path / "serial", options)
    tune = run_search(space, tmp_path / "tune", replace(options, backend="tune", workers=2))
    assert essence(serial) == essence(plain)
    for run in (serial, tune):
        assert len(run.complete) == 3
        both = {"latency_ms", "peak_memory_mb"}
        assert all(t.measured.keys() == both and t.measured_on for t in run.complete)
    memory = {t.key: t.measured["peak_memory_mb"] for t in serial.complete}
    again = {t.key: t.measured["peak_memory_mb"] for t in tune.complete}
    assert all(again[key] == memory[key] for key in memory.keys() & again.keys())


INT8 = {"top1_int8": "maximize", "latency_onnx_ms": "minimize"}


@pytest.mark.slow
def test_a_search_in_onnxruntime(tmp_path: Path) -> None:
    """A real search on digits, cut and resumed; its networks are those of one in float."""
    pytest.importorskip("onnxruntime")
    options = replace(SMALL, sampler="random", trials=1)
    space = make_space(objectives=INT8)
    for folder, which in {"plain": make_space(), "int8": space}.items():
        run_search(which, tmp_path / folder, options)
    plain = run_search(make_space(), tmp_path / "plain", replace(options, trials=2))
    run = run_search(space, tmp_path / "int8", replace(options, trials=2, replicates=1))
    study = optuna.load_study(
        study_name=STUDY_NAME, storage=f"sqlite:///{tmp_path / 'int8' / FILE_NAME}"
    )
    assert study.metric_names == ["top1_int8", "latency_onnx_ms"]
    assert run.replicates
    for trial, same in zip(run.trials, plain.trials, strict=True):
        assert trial.curve[:-1] == same.curve[:-1]
        assert trial.float_top1 == same.curve[-1]
        assert abs(trial.curve[-1] - same.curve[-1]) < 5
        assert trial.measured["latency_onnx_ms"] > 0
    assert all(again.float_top1 is not None for again in run.replicates)
    tested = [(trial.mean_test_top1, trial.top1) for trial in run.front]
    assert all(test is not None for test, _ in tested)


@pytest.mark.parametrize(
    ("part", "given", "address"),
    [
        ("objectives", INT8, r"objectives\.top1_int8"),
        ("limits", {"latency_onnx_ms": {"max": 2.0}}, r"limits\.latency_onnx_ms"),
    ],
)
def test_without_onnxruntime_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, given: Any, address: str
) -> None:
    missing = "onnx not installed (pip install vitnas[onnx])"
    monkeypatch.setattr("vitnas.engine.backends.prepare.without_onnx", lambda: missing)
    with pytest.raises(ConfigError, match=rf"^{address}: onnx not installed"):
        run_search(make_space(**{part: given}), tmp_path / "run", SMALL)
    assert not (tmp_path / "run").exists()


def test_what_onnxruntime_measures_is_measured_on_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vitnas.environment.cpu_model", lambda: "a processor")
    monkeypatch.setattr("vitnas.engine.backends.worker.device_name", lambda device: "a card")
    assert measured_name("cuda", ["latency_ms"]) == "a card"
    assert measured_name("cuda", ["latency_onnx_ms"]) == "a processor"
    assert measured_name("cuda", ["latency_ms", "latency_onnx_ms"]) == "a card and a processor"
    assert not measured_name("cuda", [])


@pytest.mark.slow
def test_another_device_is_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = make_space(objectives=THREE)
    run_search(space, tmp_path / "first", SMALL)
    again = replace(SMALL, start_from=(tmp_path / "first",), trials=1)
    said: list[str] = []
    same = run_search(space, tmp_path / "same", again, Watcher(notice=said.append))
    assert sum(t.taken for t in same.trials) == 3
    monkeypatch.setattr("vitnas.environment.cpu_model", lambda: "another processor")
    other = run_search(space, tmp_path / "other", again, Watcher(notice=said.append))
    assert not any(t.taken for t in other.trials)
    assert any("3 results not taken over: measured on" in line for line in said)


def test_other_objectives_are_another_run(controller_of: Make) -> None:
    controller_of().store.close()
    with pytest.raises(RunError, match=r"another space: objectives\.flops"):
        controller_of(make_space(objectives=THREE))
