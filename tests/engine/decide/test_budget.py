"""What a session spends, on a clock that the test turns."""

from __future__ import annotations

import pytest

from vitnas.engine.decide.budget import Budget, Meter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_is_spent_without_bounds(clock: Clock) -> None:
    meter = Meter(Budget(), clock=clock)
    clock.now += 1e9
    assert meter.spent is None


def test_wall_time_is_the_session_s(clock: Clock) -> None:
    meter = Meter(Budget(seconds=60.0), gpu_seconds=1e9, clock=clock)
    assert meter.spent is None
    clock.now += 60.0
    assert meter.spent == "the time is up"


def test_gpu_time_is_the_run_s_and_counts_what_runs(clock: Clock) -> None:
    meter = Meter(Budget(gpu_seconds=100.0, gpus=0.25), gpu_seconds=90.0, clock=clock)
    meter.begin(1)
    meter.begin(2)
    clock.now += 10.0
    assert meter.gpu_seconds == pytest.approx(95.0)
    assert meter.end(1) == pytest.approx(2.5)
    assert meter.spent is None
    clock.now += 10.0
    assert meter.end(2) == pytest.approx(5.0)
    assert meter.gpu_seconds == pytest.approx(97.5)
    meter.begin(3)
    clock.now += 10.0
    assert meter.spent == "the GPU hours are spent"


def test_a_trial_s_attempts_add_up_and_alone_is_a_whole_gpu(clock: Clock) -> None:
    meter = Meter(Budget(gpus=0.5), clock=clock)
    meter.begin(1)
    clock.now += 4.0
    assert meter.end(1) == pytest.approx(2.0)
    assert meter.end(1) == pytest.approx(2.0)
    meter.begin(1, alone=True)
    clock.now += 4.0
    assert meter.elapsed(1) == pytest.approx(4.0)
    assert meter.end(1) == pytest.approx(6.0)
    assert meter.elapsed(1) == 0.0


def test_the_cpu_has_no_gpu_time(clock: Clock) -> None:
    meter = Meter(Budget(gpu_seconds=1.0), clock=clock)
    meter.begin(1, alone=True)
    clock.now += 100.0
    assert meter.end(1) == 0.0
    assert meter.spent is None
