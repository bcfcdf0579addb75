"""From a plan to an exported folder: a long training that survives being killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import nn

from vitnas.config.files import dump_yaml
from vitnas.config.recipe import Recipe
from vitnas.cores import launch
from vitnas.data.telling import SILENT, Teller
from vitnas.errors import ConfigError, RunError, reason_of
from vitnas.exported.check import NUMBER
from vitnas.exported.folder import (
    CARD_FILE,
    LOG_FILE,
    RECIPE_FILE,
    beside,
    check_free,
)
from vitnas.exported.held_out import held_out_of
from vitnas.exported.preprocessing import trained_on
from vitnas.exported.write import Content, Written, write_network
from vitnas.files import check_own, remove_folder, write_text, writing
from vitnas.nn.weights import weights_bytes
from vitnas.training import checkpoint
from vitnas.training.card import title_of, training_card
from vitnas.training.data import check_enough, load_data
from vitnas.training.device import is_out_of_memory, own_threads
from vitnas.training.distill import load_teacher
from vitnas.training.final import Entry, FinalTraining
from vitnas.training.folders import open_folder
from vitnas.training.images import Images
from vitnas.training.plan import Plan
from vitnas.training.proxy import fresh_model
from vitnas.training.ranks import ALONE, Ranks, device_of, joined
from vitnas.training.score import Diverged, evaluate
from vitnas.training.tracking import Tracked, tracking

_LOCK = "lock"


def train_network(
    plan: Plan,
    to: str | Path,
    *,
    device: str = "auto",
    threads: int | None = None,
    workers: int = 0,
    listener: Callable[[Entry], None] | None = None,
    notice: Callable[[str], None] | None = None,
    ended: Callable[[Sequence[Entry], float | None], None] | None = None,
    formats: tuple[str, ...] = (),
    track: Sequence[str] = (),
) -> Path:
    """Train what `plan` says and write it as a folder that `vitnas.load` reads.

    While it trains, `TO.training` beside it holds a checkpoint and the log. After a kill the same
    call resumes from them; on one CPU, with as many threads, the weights are the same to the bit.
    `to` appears when the training has ended. Where torchrun has started several processes
    (`vitnas.cores.launch`), they train together, and the first one writes, speaks and calls.

    Args:
        plan: from `make_plan`.
        to: the folder; must not exist, or be empty.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        threads: of the CPU, in each process; None: one, and beside a GPU its share of the cores.
        workers: processes that read and augment images of an image folder.
        listener: called with the log's entry after every epoch.
        notice: called before the first one with what is about to be trained, in one line, and with
            the image files that are skipped; at the end with what is said of `formats`.
        ended: called after the last epoch with the log and top-1 in percent on the test images, if
            there are any; a kill between this and the end of the call makes the next one call it
            again.
        formats: which of `vitnas.exported.write.FORMATS` are written, too.
        track: names of trackers, from `parse_trackers`, that get the log's entries, too;
            `TO.tracking` holds what they write.

    Raises:
        VitnasError: something does not fit together, the training diverged or memory is exhausted.
    """
    folder = Path(to)
    check_free(folder)
    work = _sibling(folder, "training")
    _check_work(work)
    here = launch()
    at = device_of(device, here)
    tell = SILENT.notice if notice is None or here.rank else notice
    with joined(here, at) as ranks:
        training, images, start = _prepare(plan, at, workers, Teller(tell), ranks)
        identity = {**plan.identity(), "images": images.fingerprint}
        own = own_threads(at, threads)
        with _working(work, folder, ranks), _plain_errors(plan.recipe, work), own:
            log = _resume(training, identity, work, ranks)
            first = plan.line(training.num_images, len(images.val))
            for line in [first, *([start] if start else []), *images.notices]:
                tell(line)
            facts, logs = checkpoint.flat(plan.identity()), _sibling(folder, "tracking")
            subject = Tracked(logs, logs.stem, facts, is_new=not log)
            with tracking(track if ranks.is_first else (), subject, log) as tracked:
                for entry in logged_epochs(training, identity, log, work, ranks):
                    tracked(entry)
                    if listener is not None and ranks.is_first:
                        listener(entry)
            if not ranks.is_first:
                return folder
            model, batch = training.scored(), plan.recipe.eval_batch_size
            test = evaluate(model, images.test(), batch) if images.has_test else None
            if ended is not None:
                ended(log, test)
            written = _export(plan, model, images, log, test, folder, formats, start, at)
            for line in written.lines():
                tell(line)
    remove_folder(work, _ours(work))
    return folder


def _sibling(folder: Path, kind: str) -> Path:
    """`NAME.KIND` beside the folder `NAME`."""
    named = folder if folder.name else folder.absolute()  # the current folder has no name
    return named.with_name(f"{named.name}.{kind}")


def logged_epochs(
    training: FinalTraining,
    identity: dict[str, Any],
    log: list[Entry],
    work: Path,
    ranks: Ranks = ALONE,
) -> Iterator[Entry]:
    """Train the epochs that `log` does not have; each is in it and in a checkpoint when it comes.

    Args:
        training: fresh, or restored from a checkpoint with this `log`.
        identity: what the training depends on.
        log: one entry an epoch; grows.
        work: the folder of checkpoint and log, which the first of the `ranks` writes.
    """
    for result in training.epochs(len(log) + 1):
        log.append(training.entry(result))
        if ranks.is_first:
            training.take(identity, log).save(work)
            write_text(work / LOG_FILE, _lines(log))
        yield log[-1]


def _resume(
    training: FinalTraining, identity: Mapping[str, Any], work: Path, ranks: Ranks
) -> list[Entry]:
    """Restore `training` from the checkpoint in `work`, if there is one; its log.

    Raises:
        RunError: the processes see different ones.
    """
    saved = checkpoint.read(work, identity)
    log = [] if saved is None else list(saved.log)
    if not ranks.agree(len(log)):
        rule = "the processes see different checkpoints; give a --to that all machines share"
        raise RunError(f"{work}: {rule}")
    if saved is not None:
        training.restore(saved)
    return log


def _prepare(
    plan: Plan, device: torch.device, workers: int, teller: Teller, ranks: Ranks
) -> tuple[FinalTraining, Images, str]:
    """The training, its images, and where its first weights come from if they are not fresh."""
    recipe, files = plan.recipe, None
    if plan.data.name == "imagefolder":
        hw = plan.config.image_hw
        try:
            images, files = open_folder(plan.data, hw, recipe.train_fraction, teller)
        except ConfigError as error:
            raise error.at(prefix="recipe") from None
    else:
        images = load_data(plan.data, plan.config.image_hw)
    images.check_same(plan.fingerprint)
    images.check_fits(plan.config)
    kept = images.train.subset(recipe.train_fraction, images.split_seed) if files is None else files
    check_enough(len(kept), len(images.train), recipe.train_fraction, "recipe.train_fraction")
    model = fresh_model(plan.config, plan.seed, device)
    start = ""
    if plan.init_from is not None:
        from vitnas.training.first import start_from  # timm's networks, which take long to import

        first = start_from(model, plan.config, plan.init_from, images.names)
        start, images = first.line, images.normalised_by(first.stated)
    teacher = load_teacher(recipe.distill, images, device) if recipe.distill.teacher else None
    how: dict[str, Any] = {"files": files, "teacher": teacher, "workers": workers, "ranks": ranks}
    training = FinalTraining(model, recipe, images, plan.seed, device, **how)
    return training, images, start


def _export(
    plan: Plan,
    model: nn.Module,
    images: Images,
    log: list[Entry],
    test: float | None,
    folder: Path,
    formats: tuple[str, ...],
    start: str,
    device: torch.device,
) -> Written:
    content = Content(
        plan.config,
        weights_bytes(model),
        title_of(plan, log[-1]["top1"]),
        images.names,
        trained_on(plan.data.name, images.mean, images.std),
        images.val.normalise(images.val.pixels[:NUMBER]).cpu(),
        formats,
        held_out_of(plan.data),
    )
    with beside(folder) as draft:
        written = write_network(draft, folder, content)
        write_text(draft / LOG_FILE, _lines(log))
        write_text(draft / RECIPE_FILE, dump_yaml(plan.recipe.model_dump(mode="json")))
        write_text(
            draft / CARD_FILE,
            training_card(plan, images, log, test, folder, written, start, str(device)),
        )
    return written


def _lines(log: list[Entry]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in log)


def _check_work(work: Path) -> None:
    """Refuse a folder that holds what no training wrote, before anything is done.

    Raises:
        RunError: names the first such file; or the folder is a link or a file.
    """
    check_own(work)
    there = {path.name: path for path in work.iterdir()} if work.is_dir() else {}
    ours = set(_ours(work)) if checkpoint.FILE_NAME in there else {_LOCK}
    for name, path in sorted(there.items()):
        if name not in ours or path.is_symlink():
            raise RunError(
                f"{work}: holds '{name}', which no training wrote; move it, or give another --to"
            )


def _ours(work: Path) -> list[str]:
    """The files of a training, and what a killed one may have left half written."""
    unfinished = (path.name for path in work.glob(".vitnas.*.tmp"))
    return [checkpoint.FILE_NAME, LOG_FILE, _LOCK, *unfinished]


@contextmanager
def _working(work: Path, folder: Path, ranks: Ranks) -> Iterator[None]:
    """The folder of a running training, locked; removed at the end if it has no checkpoint.

    The first of the `ranks` does this, and the others wait until it is done.
    """
    if not ranks.is_first:
        ranks.wait()
        yield
        return
    lock = FileLock(work / _LOCK)
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:  # which is an OSError, too
            raise RunError(f"{work}: another process is training here") from None
    try:
        check_free(folder)  # again, now that the lock keeps others out
        ranks.wait()
        yield
    finally:
        lock.release()
        if not (work / checkpoint.FILE_NAME).is_file():
            remove_folder(work, _ours(work))


@contextmanager
def _plain_errors(recipe: Recipe, work: Path) -> Iterator[None]:
    """Errors that another recipe would avoid, in one line."""
    try:
        yield
    except Diverged as error:
        (work / checkpoint.FILE_NAME).unlink(missing_ok=True)  # it would diverge again
        hint = "" if recipe.grad_clip else " or set grad_clip"
        raise RunError(f"the training diverged: {error}; take a lower lr{hint}") from None
    except RuntimeError as error:
        if is_out_of_memory(error):
            rule = f"the device's memory is exhausted at batch_size {recipe.batch_size}"
            raise RunError(f"{rule}; lower it, or set micro_batch_size") from None
        if not str(error).startswith("DataLoader worker"):
            raise
        rule = "a process that reads images was killed; was memory short?"
        raise RunError(f"{rule} The same command resumes, also with fewer --workers") from None
    except OSError as error:
        if error.filename is None:  # of the output, not of a file
            raise
        raise RunError(f"{work}: cannot be written: {reason_of(error)}") from None
