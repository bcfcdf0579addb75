"""The long trainings of a confirmation: each in a process of its own, several at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from vitnas.config.data import DataConfig
from vitnas.config.files import validate
from vitnas.confirmation.jobs import LongJob, jobs_of
from vitnas.confirmation.options import ConfirmOptions
from vitnas.cores import cores
from vitnas.data.there import check_there
from vitnas.durations import span
from vitnas.engine.store.study import read_run
from vitnas.errors import RunError, VitnasError
from vitnas.longer import check_can_add
from vitnas.run import Run
from vitnas.words import plural


class _Result(NamedTuple):
    """Of a training: top-1 in percent on the scoring images, and on the test images if there are
    any; or what went wrong, in a line."""

    top1: float = 0.0
    test_top1: float | None = None
    error: str = ""


def run_confirmation(path: Path, options: ConfirmOptions, notice: Callable[[str], None]) -> Run:
    """Train a front's networks and baselines of like FLOPs for long; the same call resumes.

    Each network is written to a folder in `long` of the run's folder, and its result is a line of
    `long.jsonl`, as of `vitnas train --for`. What the run has already is not trained again.

    Args:
        path: the run's folder.
        options: what is trained.
        notice: told what begins, and of each training that has ended.

    Returns:
        The run as it is then.

    Raises:
        VitnasError: there is no run or no such trial, it cannot be written, its images are not
            where they were, or no training reached its end.
    """
    run = read_run(path)
    check_can_add(path)
    jobs, lines = jobs_of(run, options)
    if left := [job for job in jobs if not job.is_done(run)]:
        check_there(validate(DataConfig, run.space["data"]))
    devices = _devices(options)
    for line in (*lines, _plan(jobs, left, len(devices))):
        notice(line)
    failed = 0
    for number, (job, result) in enumerate(_trained(path, left, devices), start=1):
        failed += bool(result.error)
        done = len(jobs) - len(left) + number
        notice(f"[{done:>{len(str(len(jobs)))}}/{len(jobs)}] {_line(job, result)}")
    if failed and failed == len(jobs):
        raise RunError(f"{path}: none of {plural(failed, 'long training')} reached its end")
    return read_run(path)


def _plan(jobs: Sequence[LongJob], left: Sequence[LongJob], at_a_time: int) -> str:
    """What is trained, in a sentence."""
    ours = len({job.trial for job in jobs if job.trial is not None})
    theirs = len({job.baseline for job in jobs if job.baseline})
    what = f"{plural(ours, 'network')} of the run and {plural(theirs, 'baseline')} of like FLOPs"
    text = f"{what}, {plural(len(jobs), 'training')} of {plural(jobs[0].epochs, 'epoch')}"
    if len(left) < len(jobs):
        text += f", {len(jobs) - len(left)} of them done already"
    if seconds := sum(job.seconds for job in left):
        text += f"; about {span(max(seconds / at_a_time, left[0].seconds))}"
    return text


def _line(job: LongJob, result: _Result) -> str:
    if result.error:
        return f"{job.called:<24} failed  {result.error}"
    test = "" if result.test_top1 is None else f"  (test {result.test_top1:.2f} %)"
    return f"{job.called:<24} {result.top1:6.2f} %{test}"


def _devices(options: ConfirmOptions) -> list[str]:
    """A device for each training at a time."""
    from torch.cuda import device_count

    from vitnas.training.device import resolve_device

    device = resolve_device(options.device)
    if device.type == "cpu":
        return ["cpu"] * (options.workers or cores())
    own = [str(device)] if device.index is not None else []
    all_of_them = own or [f"cuda:{index}" for index in range(device_count())]
    number = options.workers or len(all_of_them)
    return [all_of_them[index % len(all_of_them)] for index in range(number)]


def _trained(
    run: Path, jobs: Sequence[LongJob], devices: Sequence[str]
) -> Iterator[tuple[LongJob, _Result]]:
    """Train all, as many at a time as there are devices; each is told when it has ended.

    A training that is killed, as for its memory, is a result like others: a pool of
    `multiprocessing` would wait for it for ever, and one of `concurrent.futures` ends with it. An
    error or Ctrl-C here ends those that run.
    """
    context = get_context("spawn")
    left, free = list(jobs), list(devices)
    running = dict[Connection, tuple[LongJob, str, BaseProcess]]()
    process: BaseProcess
    try:
        while left or running:
            while left and free:
                job, device = left.pop(0), free.pop(0)
                reader, writer = context.Pipe(duplex=False)
                process = context.Process(target=_train, args=(run, job, device, writer))
                process.start()
                writer.close()
                running[reader] = job, device, process
            ready = wait(list(running))
            for reader in [one for one in running if one in ready]:
                job, device, process = running.pop(reader)
                result = _heard(reader, process)
                free.append(device)
                yield job, result
    finally:
        for _, _, process in running.values():
            process.terminate()
            process.join()


def _heard(reader: Connection, process: BaseProcess) -> _Result:
    """What a process says at its end; a line of how it ended if it says nothing."""
    try:
        result: _Result = reader.recv()
    except EOFError:
        process.join()
        return _Result(error=f"its process ended with code {process.exitcode}")
    process.join()
    return result


def _train(run: Path, job: LongJob, device: str, writer: Connection) -> None:
    """One training, in its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver hears Ctrl-C and ends all
    Thread(target=_end_with_parent, daemon=True).start()
    from vitnas.trained_long import keeping, plan_for
    from vitnas.training.train import train_network

    found, to = read_run(run), job.folder(run)
    results = list[_Result]()

    def ended(log: Sequence[dict[str, Any]], test_top1: float | None) -> None:
        keep(log, test_top1)
        results.append(_Result(log[-1]["top1"], test_top1))

    try:
        to.parent.mkdir(exist_ok=True)
        chosen: dict[str, Any] = {"baseline": job.baseline or None, "lr": job.lr}
        plan = plan_for(found, job.trial, **chosen, epochs=job.epochs, seed=job.seed)
        keep = keeping(found, job.trial, plan, device, to)
        train_network(plan, to, device=device, ended=ended)
    except VitnasError as error:
        writer.send(_Result(error=str(error)))
    else:
        writer.send(results[-1])


def _end_with_parent() -> None:
    """End this process when the driver has ended, killed too; it resumes from its last epoch."""
    if driver := parent_process():
        driver.join()
    os._exit(1)
