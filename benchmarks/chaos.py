"""Nothing lost: one search that is killed 20 times, runs into a full disk and loses a node.

Two nodes of Ray on this machine, networks of the space `digits`, no early stopping. At random
moments of the run's first nine tenths the driver or a worker is killed with SIGKILL, a fifth of
them soon after the last one, so that they meet a start; once the disk that holds the run is filled,
once a node is removed. After each end of the driver the same search is started again. In the end
the study is compared with a ledger that every driver kept of what it was told: exactly N trials,
none lost, none twice, none running, nothing trained again that had ended, and no more epochs
repeated than were in flight when something was killed. The disk is a tmpfs of its own where one may
be mounted (as root); elsewhere the driver's file size is limited, which SQLite meets in the same
place.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import ROOT, conclude, digits_space, is_quick, show

EPOCHS = 8
SEED = 20
WORKERS = 2
DISK_MB = 24
PATIENCE_S = 240.0


def drive(folder: Path, address: str, trials: int) -> None:
    """What is killed: a search that writes down everything it is told, a line a system call."""
    from vitnas.engine.options import SearchOptions
    from vitnas.engine.search import run_search
    from vitnas.engine.watch.watcher import Watcher
    from vitnas.errors import VitnasError
    from vitnas.records import TrialRecord

    ledger = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, b"session\n")

    def note(event: str, trial: TrialRecord) -> None:
        line = f"{event} {trial.number} {trial.epochs} {trial.outcome.value}\n"
        os.write(ledger, line.encode())

    options = SearchOptions(
        trials=trials,
        gpus_per_trial=0.0,
        seed=SEED,
        ray_address=address,
        pruner="none",
        baselines=False,
    )
    space = digits_space(epochs=EPOCHS, batch_size=64, train_fraction=0.3)
    try:
        run_search(space, folder / "disk" / "run", options, Watcher(listener=note))
    except VitnasError as error:
        sys.exit(f"vitnas: {error}")


@dataclass
class Chaos:
    """One search and what is done to it."""

    folder: Path
    trials: int
    cluster: Any
    nodes: list[Any]
    random: random.Random
    is_own_disk: bool
    done: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    said: str = ""

    @property
    def run(self) -> Path:
        return self.folder / "disk" / "run"

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, "--drive", str(self.folder)]
        command += [self.cluster.address, str(self.trials)]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )

    def lines(self) -> list[list[str]]:
        """The ledger so far."""
        path = self.folder / "ledger"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def live_through(self, events: list[str]) -> subprocess.Popen[str]:
        """Start, let each event happen at a random moment, start again; the driver at the end."""
        driver = self.start()
        moments = sorted(self.random.uniform(0.0, 0.9 * self.trials) for _ in events)
        for event, moment in zip(events, moments, strict=True):
            happened = False
            while not happened and self.wait(driver, moment):
                happened = getattr(self, event)(driver)
            if not happened:
                break
            self.done[event] += 1
            print(f"  {event:<6} with {self.num_ended():>3} trials ended", flush=True)
            if event in ("driver", "disk"):
                driver = self.start()
        return driver

    def wait(self, driver: subprocess.Popen[str], moment: float) -> bool:
        """Until a random moment: soon, or some time after so many trials have ended."""
        if self.random.random() < 0.2:
            return self.sleep(driver, self.random.uniform(0.0, 10.0))
        end = time.monotonic() + PATIENCE_S * (1 + moment - self.num_ended())
        while self.num_ended() < moment:
            if driver.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.05)
        return self.sleep(driver, self.random.uniform(0.0, 3.0))

    def sleep(self, driver: subprocess.Popen[str], seconds: float) -> bool:
        time.sleep(seconds)
        return driver.poll() is None

    def driver(self, driver: subprocess.Popen[str]) -> bool:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        self.in_flight += sum(self.epochs_in_flight())
        return True

    def worker(self, driver: subprocess.Popen[str]) -> bool:
        """Kill one training process; no where none has started yet."""
        found = list(self.workers())
        if found:
            os.kill(self.random.choice(found), signal.SIGKILL)
            # One message of it may still arrive.
            self.in_flight += max(self.epochs_in_flight(), default=0) + 1
        return bool(found)

    def node(self, driver: subprocess.Popen[str]) -> bool:
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
        self.in_flight += max(self.epochs_in_flight(), default=0) + 1
        return True

    def disk(self, driver: subprocess.Popen[str]) -> bool:
        """Let the disk be full until the driver has said so; then there is room again."""
        ballast = self.folder / "disk" / "ballast"
        if self.is_own_disk:
            with ballast.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
        else:
            size = max((path.stat().st_size for path in self.run.glob("*.db*")), default=0)
            resource.prlimit(driver.pid, resource.RLIMIT_FSIZE, (size + 8192, size + 8192))
        _, self.said = driver.communicate(timeout=PATIENCE_S)
        print("".join(f"         said: {line}\n" for line in self.said.splitlines()), end="")
        ballast.unlink(missing_ok=True)
        self.in_flight += sum(self.epochs_in_flight())
        return True

    def workers(self) -> Iterator[int]:
        """Training processes of this cluster's nodes."""
        mine = {info.process.pid for node in self.nodes for info in raylets(node)}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                title = (path / "cmdline").read_bytes()
            except OSError:  # it has just ended
                continue
            if parent in mine and b"Trainable" in title:
                yield int(path.name)

    def epochs_in_flight(self) -> list[int]:
        """Epochs behind every trial that this session has started and not ended."""
        epochs: dict[str, int] = {}
        for event, *trial in self.lines():
            if event == "session":
                epochs.clear()
            elif event == "end":
                epochs.pop(trial[0], None)
            elif event in ("start", "epoch"):
                epochs[trial[0]] = int(trial[1])
        return list(epochs.values())

    def num_ended(self) -> int:
        return sum(line[0] == "end" and line[3] == "complete" for line in self.lines())


def raylets(node: Any) -> list[Any]:
    return list(node.all_processes.get("raylet", []))


@contextmanager
def disk_at(place: Path) -> Iterator[bool]:
    """A small file system at `place`, and whether that could be had."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(place)]
    try:
        made = subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(place)], check=False)


@contextmanager
def two_nodes(folder: Path) -> Iterator[tuple[Any, list[Any]]]:
    """Ray's test cluster: a head without CPUs, and two nodes with one each.

    Its files lie in `folder`, so that nobody else's `ray.init()` on this machine finds it.
    """
    os.environ["RAY_TMPDIR"] = str(folder)
    from vitnas.engine.backends import cluster as quiet

    assert quiet
    from ray.cluster_utils import Cluster

    args = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=args)
    try:
        yield cluster, [cluster.add_node(num_cpus=1) for _ in range(WORKERS)]
    finally:
        cluster.shutdown()


def repeated_epochs(lines: list[list[str]]) -> tuple[int, int]:
    """Epochs that were trained and later again; trials that were started after their end."""
    current: Counter[str] = Counter()
    repeated, ended, again = 0, set(), 0
    for event, *trial in lines:
        number = trial[0] if trial else ""
        if event == "start":
            repeated += current.pop(number, 0)
            again += number in ended
        elif event == "epoch":
            current[number] += 1
        elif event == "end":
            ended.add(number)
    return repeated, again


def judge(chaos: Chaos, events: list[str]) -> dict[str, float | str | list[str]]:
    """What the study holds at the end, beside what the drivers wrote down."""
    from vitnas.engine.store.study import read_run
    from vitnas.records import Outcome

    run = read_run(chaos.run)
    trained = [trial for trial in run.trials if trial.is_ended_here]
    repeated, again = repeated_epochs(chaos.lines())
    whole = [t for t in trained if t.outcome is Outcome.COMPLETE and t.epochs == EPOCHS]
    return {
        "trials": len(trained),
        "trials_lost": chaos.trials - len(whole),
        "trials_twice": len(trained) - len({trial.key for trial in trained}),
        "trials_running": run.count(Outcome.RUNNING),
        "trained_again_after_their_end": again,
        "epochs_trained": sum(line[0] == "epoch" for line in chaos.lines()),
        "epochs_repeated": repeated,
        "epochs_in_flight": chaos.in_flight,
        "epochs_repeated_beyond": max(0, repeated - chaos.in_flight),
        "events_missed": len(events) - chaos.done.total(),
        **{f"kills_of_{kind}": chaos.done[kind] for kind in ("driver", "worker")},
        "nodes_removed": chaos.done["node"],
        "disk": "a tmpfs of its own" if chaos.is_own_disk else "RLIMIT_FSIZE",
        "disk_full_in_one_line": int(chaos.said.count("\n") == 1 and "cannot be" in chaos.said),
        "disk_full_said": chaos.said.strip().splitlines()[-1].rpartition("/")[2],
        "sessions": len(run.environment.sessions),
    }


def main() -> None:
    quick = is_quick(__doc__)
    kills, trials = (4, 24) if quick else (20, 40)
    chance = random.Random(SEED)
    events = ["driver", "worker"] * (kills // 2) + ["disk", "node"]
    chance.shuffle(events)
    print(f"{trials} trials, {kills} kills, a full disk, a node that leaves")
    with (
        tempfile.TemporaryDirectory() as name,
        disk_at(Path(name) / "disk") as own,
        two_nodes(Path(name)) as (cluster, nodes),
    ):
        started = time.monotonic()
        chaos = Chaos(Path(name), trials, cluster, nodes, chance, own)
        driver = chaos.live_through(events)
        _, said = driver.communicate(timeout=30 * PATIENCE_S)
        if driver.returncode:
            sys.exit(f"the last driver ended with {driver.returncode}: {said}")
        figures = judge(chaos, events)
        figures["seconds"] = round(time.monotonic() - started)
    show(("at the end", ""), [(k.replace("_", " "), str(v)) for k, v in figures.items()])
    none = {"max": 0.0}
    targets = {
        "trials": {"min": float(trials), "max": float(trials)},
        "trials_lost": none,
        "trials_twice": none,
        "trials_running": none,
        "trained_again_after_their_end": none,
        "epochs_repeated_beyond": none,
        "events_missed": none,
        "disk_full_in_one_line": {"min": 1.0},
    }
    conclude("chaos", quick, figures, targets)


def arguments() -> Callable[[], None]:
    """`--drive` is what the benchmark starts itself; all else is its own command line."""
    if "--drive" not in sys.argv:
        return main
    parser = argparse.ArgumentParser()
    parser.add_argument("--drive", nargs=3, metavar=("FOLDER", "ADDRESS", "TRIALS"))
    folder, address, trials = parser.parse_args().drive
    return lambda: drive(Path(folder), address, int(trials))


if __name__ == "__main__":
    arguments()()
