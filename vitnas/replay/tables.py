"""Find, read and write recorded tables.

A file holds the configuration, FLOPs and trainings of each network: one, and its replicates. The
key, the draw and the costs are computed when the file is read, and a difference in FLOPs is an
error.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from vitnas.config.costs import DEFAULT_COSTS
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.engine.decide.locate import locate
from vitnas.engine.samplers.pool import propose_like
from vitnas.engine.store.stored import Percent
from vitnas.engine.store.study import FILE_NAME, read_run
from vitnas.errors import ConfigError, RunError, nearest_name
from vitnas.files import read_bytes, write_bytes, writing
from vitnas.records import Outcome, TrialRecord
from vitnas.replay.table import LEFT_OUT, Recorded, RecordedTraining, Table
from vitnas.run import Run
from vitnas.sessions import Amount, Session

FORMAT = 1
SUFFIX = ".json.gz"
_ENDINGS = (Outcome.COMPLETE, Outcome.DIVERGED, Outcome.OOM, Outcome.TIMEOUT)
_WITHOUT_END = (Outcome.STOPPED, Outcome.FAILED)
_SHIPPED = Path(__file__).parent / "recorded"
_NOT_A_TABLE = (
    OSError, EOFError, ValueError, LookupError, TypeError, RecursionError, zlib.error,
)  # fmt: skip
_MOST = 64 << 20  # bytes, packed or not
_GZIP = 31  # zlib's number for it


class _StoredTraining(BaseModel):
    """A training in a table's file."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    curve: list[Percent] | tuple[Percent, ...]
    outcome: Annotated[Outcome, Field(strict=False)]
    seconds: Amount

    def checked(self, epochs: int, where: str) -> RecordedTraining:
        """As a table has it.

        Raises:
            RunError: it is complete and has another number of epochs.
        """
        if self.outcome is Outcome.COMPLETE and len(self.curve) != epochs:
            raise RunError(f"{where}: is complete, but has {len(self.curve)} of {epochs} epochs")
        return RecordedTraining(tuple(self.curve), self.outcome, self.seconds)


class _StoredNetwork(_StoredTraining):
    """A network in a table's file, with its first training."""

    config: dict[str, Any]
    flops: float
    replicates: list[_StoredTraining] = []


def find_table(name: str | Path) -> Table:
    """The table of a results folder, of a table's file, or the shipped table of this name.

    Raises:
        RunError: there is no such table, or it cannot be used.
    """
    path = Path(name)
    if (path / FILE_NAME).is_file():
        return table_of(read_run(path))
    shipped = shipped_tables()
    if path.is_file():
        return read_table(path)
    if str(name) in shipped:
        return read_table(shipped[str(name)])
    near = nearest_name(str(name), shipped)
    raise RunError(
        f"{name}: must be a run, a table's file, or one of {', '.join(shipped)}"
        + (f" (nearest: {near})" if near else "")
    )


def shipped_tables() -> dict[str, Path]:
    """Name -> file of the tables that come with vitnas."""
    return {path.name.removesuffix(SUFFIX): path for path in sorted(_SHIPPED.glob("*" + SUFFIX))}


def table_of(run: Run) -> Table:
    """The table of a run: its networks that were trained to the end.

    Raises:
        RunError: fewer than two networks were.
    """
    again: dict[int | None, list[dict[str, Any]]] = {}
    for trial in run.replicates:
        if trial.outcome in _ENDINGS:
            again.setdefault(trial.replicate_of, []).append(_stored_training(trial))
    networks = [
        {
            "config": trial.config,
            "flops": trial.flops,
            **_stored_training(trial),
            "replicates": again.get(trial.number, []),
        }
        for trial in run.trials
        if trial.outcome in _ENDINGS
    ]
    return _table(run.space, networks, _made(run), str(run.path))


def _stored_training(one: TrialRecord | RecordedTraining) -> dict[str, Any]:
    """As a table's file has it; one whose time is not known took a second."""
    seconds = float(f"{one.seconds or 1.0:.4g}")
    return {"curve": one.curve, "outcome": one.outcome.value, "seconds": seconds}


def read_table(file: Path) -> Table:
    """Read a file that `write_table` wrote.

    Raises:
        RunError: it is not a table, it has another format, or a network's FLOPs differ from those
            of today's count.
    """
    try:
        tree = json.loads(_unpacked(file))
        if tree["format"] != FORMAT:
            raise RunError(f"{file}: has format {tree['format']}; this vitnas reads {FORMAT}")
        space, networks, made = dict(tree["space"]), list(tree["networks"]), dict(tree["made"])
        networks = list(map(dict, networks))
    except _NOT_A_TABLE as error:
        raise RunError(f"{file}: is not a recorded table ({error})") from None
    return _table(space, networks, made, str(file))


def is_table(head: bytes) -> bool:
    """Whether `head` is the beginning of a file that `write_table` wrote."""
    try:
        return zlib.decompressobj(_GZIP).decompress(head, 16).startswith(b'{"format":')
    except zlib.error:
        return False


def _unpacked(file: Path) -> bytes:
    """The content of a compressed file, up to a maximal size.

    Raises:
        OSError, EOFError, zlib.error: the file is not compressed, cut off, damaged or too large.
    """
    unpack = zlib.decompressobj(_GZIP)
    content = unpack.decompress(read_bytes(file, _MOST), _MOST)
    if unpack.eof:
        return content
    raise EOFError("it is larger than 64 MiB" if len(content) == _MOST else "it is cut off")


def write_table(table: Table, file: str | Path) -> None:
    """Write a table as compressed JSON. The same table gives the same bytes.

    Raises:
        RunError: the file cannot be written.
    """
    networks = [_stored(network) for network in table.networks]
    tree = {"format": FORMAT, "made": table.made, "space": table.space.to_tree()}
    tree["networks"] = networks
    text = json.dumps(tree, separators=(",", ":"))
    with writing(file):
        write_bytes(file, gzip.compress(text.encode(), mtime=0))


def _stored(network: Recorded) -> dict[str, Any]:
    first, *others = map(_stored_training, network.trainings)
    tree = {"config": network.config.to_tree(), **first, "flops": network.proposal.flops}
    return {**tree, "replicates": others} if others else tree


def _table(
    space: Mapping[str, Any],
    networks: Sequence[Mapping[str, Any]],
    made: Mapping[str, Any],
    source: str,
) -> Table:
    config = validate(SpaceConfig, dict(space), file=source)
    try:
        found = SearchSpace(config)
    except ConfigError as error:
        raise error.at(file=source) from None
    if found.config.objectives.costs != DEFAULT_COSTS or found.config.measured:
        asked = ", ".join(dict.fromkeys((*found.config.objectives.costs, *found.config.measured)))
        raise RunError(f"{source}: has {asked}; a replay needs the objectives top1 and flops only")
    recorded: dict[str, Recorded] = {}
    for network in _recorded(found, networks, source):
        recorded.setdefault(network.proposal.key, network)
    table = Table(found, tuple(recorded.values()), made)
    if len(table.complete) < 2:
        number = len(table.complete)
        raise RunError(f"{source}: needs two networks trained to the end, and has {number}")
    return table


def _recorded(
    space: SearchSpace, networks: Sequence[Mapping[str, Any]], source: str
) -> Iterator[Recorded]:
    for index, network in enumerate(networks):
        where = f"{source}: networks[{index}]"
        missing = {"config", "curve", "flops", "outcome", "seconds"} - set(network)
        if missing:
            raise RunError(f"{where}: has no {', '.join(sorted(missing))}")
        stored = validate(_StoredNetwork, network, file=where)
        config = validate(ModelConfig, stored.config, file=where)
        proposal = propose_like(space, locate(space, config, where).params)
        if proposal is None or proposal.flops != stored.flops:
            now = "it is not in the space" if proposal is None else f"it has {proposal.flops}"
            raise RunError(f"{where}: had {network['flops']} FLOPs when recorded; now {now}")
        epochs = space.config.proxy.epochs
        again = [
            one.checked(epochs, f"{where}.replicates[{number}]")
            for number, one in enumerate(stored.replicates)
        ]
        yield Recorded(config, proposal, (stored.checked(epochs, where), *again))


def _made(run: Run) -> dict[str, Any]:
    """How a run was made, without the paths of the machine."""
    sessions = run.environment.sessions or [Session()]
    session, told = sessions[0], sessions[0].told()
    pruner = session.pruner.name if session.pruner else "curve" if session.prune else "none"
    options = f"--sampler {session.sampler} --pruner {pruner}"
    command = f"vitnas search {run.name} {options} --trials {run.num_trials} --seed"
    again = Counter(trial.replicate_of for trial in run.replicates)
    least = min((again[trial.number] for trial in run.complete), default=0)
    repeated = f" --replicates {least} --replicate-all" if least else ""
    return {
        "command": f"{command} {run.environment.seed}{repeated}",
        "sessions": len(sessions),
        "seed": run.environment.seed,
        "data": run.environment.data.told() or None,
        LEFT_OUT: sum(trial.outcome in _WITHOUT_END for trial in run.trials),
        **{key: told.get(key) for key in ("versions", "hardware", "device", "git_revision")},
    }
