"""The whole road as a newcomer walks it."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import vitnas
from tests.cli.conftest import SERIAL, complaint, space_file, vitnas_says
from tests.config.trees import TREE
from vitnas.cli import main
from vitnas.engine.store.study import read_run
from vitnas.errors import ConfigError, DataError
from vitnas.run import Run

RUNS, BARE = ("--formats", "py"), ("--formats", "none")


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one real search."""
    home = tmp_path_factory.mktemp("road")
    (home / "tiny.yaml").write_text(f"# mine\n{yaml.safe_dump(TREE, sort_keys=False)}")
    with pytest.raises(SystemExit) as ended:
        main(["search", str(home / "tiny.yaml"), *SERIAL, "--out", str(home / "run")])
    assert ended.value.code == 0
    return home / "run"


@pytest.fixture
def run(road: Path) -> Run:
    return read_run(road)


PROMISED = (
    *("study.db", "space.yaml", "environment.json"),
    *("trials.csv", "front.csv", "front.png", "report.md", "report.html"),
)


def test_a_search_leaves_every_file_promised(road: Path, run: Run) -> None:
    for name in PROMISED:
        assert (road / name).stat().st_size > 100, name
    assert (road / "space.yaml").read_text().startswith("# mine\n")
    assert len(run.complete) == 3
    for trial in run.complete:
        config = vitnas.load_config(road / "configs" / f"{trial.number}.yaml")
        assert config.key == trial.key
    assert not list(road.glob("*.tmp"))


def test_several_runs_are_compared(
    road: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(road, other)
    text, _ = vitnas_says(capsys, "report", str(other), str(road), code=0)
    assert "cannot be told apart: +0.00 points" in text
    assert "compared.html" in text
    assert (other / "compared.html").stat().st_size > 10**6
    assert not (road / "compared.html").exists()
    assert "is given twice" in complaint(capsys, "report", str(other), str(other))
    assert "--to is for several runs" in complaint(capsys, "report", str(road), "--to", "x.html")
    several = ("report", str(other), str(road))
    assert "is for one run" in complaint(capsys, *several, "--calibration", "c")
    mine = tmp_path / "mine.html"
    mine.write_text("my own page")
    assert "did not write" in complaint(capsys, *several, "--to", str(mine))
    assert mine.read_text() == "my own page"


@pytest.mark.slow
def test_report_rebuilds_and_imports_neither_torch_nor_ray(road: Path) -> None:
    for name in PROMISED[3:]:
        (road / name).unlink()
    code = (
        "import sys; from vitnas.cli import main\n"
        f"try: main(['report', {str(road)!r}])\n"
        "finally: print(*{'torch', 'ray'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    last = [f"report: {road}/report.html", f"to choose a network: vitnas pick {road}"]
    assert done.stdout.splitlines()[-2:] == last
    assert all((road / name).is_file() for name in PROMISED)


@pytest.mark.slow
def test_a_search_on_ray_holds_no_torch(tmp_path: Path) -> None:
    """Its workers do, and the process that reads the images."""
    asked = ["search", "digits", "--out", str(tmp_path / "run"), "--trials", "1", "--epochs", "1"]
    asked += ["--workers", "1", "--no-baselines"]
    code = (
        f"import sys; from vitnas.cli import main\ntry: main({asked!r})\n"
        "finally: print('LOADED', *{'torch', 'timm', 'sklearn', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED ray", done.stdout


def test_an_exported_network_is_the_one_that_was_searched(
    road: Path, run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from vitnas.nn.weights import load_weights

    assert run.knee is not None
    out, _ = vitnas_says(capsys, "export", str(road), "--knee", "--to", "mine", *RUNS, code=0)
    assert "vitnas.load('mine')" in out
    assert "model.py: the same scores without vitnas on 16 images that score candidates" in out
    assert {path.name for path in Path("mine").iterdir()} == {
        "config.json", "config.yaml", "model.safetensors", "model.py", "README.md"
    }  # fmt: skip
    by_hand = vitnas.build_model(vitnas.load_config("mine/config.yaml"))
    load_weights(by_hand, road / "weights" / f"{run.knee.number}.safetensors")
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(vitnas.load("mine")(images), by_hand.eval()(images))


def test_an_export_that_trains_says_how_long_it_takes(
    road: Path, run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run.knee is not None
    number = run.knee.number
    copy = shutil.copytree(road, tmp_path / "copy")
    kept = copy / "weights" / f"{number}.safetensors"
    kept.rename(tmp_path / "kept")
    out, _ = vitnas_says(capsys, "export", str(copy), "--knee", "--to", "again", *BARE, code=0)
    first, *epochs, _ = out.splitlines()
    again = f"trial {number}: its weights are not kept; training it again for {run.epochs} epochs"
    assert first == f"{again}, about 10 s"
    assert [line.split()[1] for line in epochs] == ["1/3", "2/3", "3/3"]
    assert Path("again/model.safetensors").read_bytes() == (tmp_path / "kept").read_bytes()
    complaint(capsys, "export", str(copy), "--knee", "--to", "again")
    out, _ = vitnas_says(
        capsys, "export", str(road), "--knee", "--epochs", "1", "--to", "anew", *BARE, code=0
    )
    assert out.startswith(f"trial {number}: training it anew for 1 epoch, about 10 s\nepoch 1/1")


def test_a_network_is_picked(road: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    most = max(trial.flops for trial in run.complete)
    text, _ = vitnas_says(capsys, "pick", str(road), "--under", str(most), code=0)
    assert f"of 3 networks with at most {most:,} FLOPs" in text
    found = json.loads(vitnas_says(capsys, "pick", str(road), "--json", code=0)[0])
    assert f"Trial {found['trial']} has the highest top-1" in text
    problem = complaint(capsys, "pick", str(road), "--under", "-1")
    assert problem == "--under '-1': must be a number above 0, like 300k, 2M or 1.5G"
    assert "the closest is trial" in complaint(capsys, "pick", str(road), "--params", "1")
    problem = complaint(capsys, "pick", str(road), "--latency-onnx-ms", "5")
    assert "latency in onnxruntime was not measured" in problem
    assert "--latency-onnx-ms" in complaint(capsys, "pick", str(road), "--latency-onnx-ms", "-1")


def test_what_cannot_be_exported(road: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/x").write_text("")
    expected = {
        (): "choose a network by one of",
        ("--trial", "0", "--knee"): "choose a network by one of",
        ("--trial", "999"): "there is no trial 999",
        ("--under", "1"): "no network has at most 1 FLOPs; the closest is",
        ("--under", "abc"): "--under 'abc': must be a number above 0",
        ("--under", "nan"): "--under 'nan'",
        ("--knee", "--to", "full"): "full: is not empty",
        ("--knee", "--to", "full/x"): "full/x: is a file",
        ("--knee", "--to", "full/x/y"): "full/x is not a writable folder",
        ("--knee", "--to", "z" * 300): "cannot be used: file name too long",
        ("--knee", "--to", "/proc/x"): "/proc/x: cannot be written",
    }
    for arguments, words in expected.items():
        assert words in complaint(capsys, "export", str(road), "--to", "new", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("out", [".", "{{a}}", "it's; $(a) {b}", "-run"])
def test_a_run_may_lie_in_any_folder(
    out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a report says to copy is a command, wherever the run lies."""
    file = Path(space_file({})).resolve()
    Path("here").mkdir()
    monkeypatch.chdir("here")
    search = ("search", str(file), *SERIAL, "--trials", "1", f"--out={out}")
    vitnas_says(capsys, *search, code=0)
    vitnas_says(capsys, *search, code=0)
    vitnas_says(capsys, "status", "--", out, code=0)
    vitnas_says(capsys, "report", "--", out, code=0)
    found = re.search("`vitnas (export .*)`", (Path(out) / "report.md").read_text())
    assert found
    vitnas_says(capsys, *shlex.split(found[1]), *BARE, code=0)
    assert vitnas.load("my_network")


@pytest.mark.parametrize("option", ["--record", "--plot"])
@pytest.mark.parametrize("file", ["thesis", "folder", "link", "thesis/new", "."])
def test_a_replay_writes_over_nothing_of_others(
    road: Path, option: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so before it searches; with all samplers and pruners that takes long."""
    Path("thesis").write_text("mine")
    Path("folder").mkdir()
    Path("link").symlink_to("thesis")
    line = complaint(capsys, "replay", str(road), option, file)
    assert re.match(f"{file}: (is a file that vitnas did not write|cannot be )", line)
    assert Path("link").is_symlink()
    assert Path("thesis").read_text() == "mine"


def test_to_look_at_a_run_imports_nothing_that_it_names(
    road: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(road, "run")
    Path("stranger.py").write_text(f"open({str(Path('ran').resolve())!r}, 'w')")
    monkeypatch.syspath_prepend(Path.cwd())
    with contextlib.closing(sqlite3.connect("run/study.db")) as study, study:
        for name in ("dwconv", "ska", "mhsa", "digits", "ehvi"):
            for table in ("study_user_attributes", "trial_user_attributes"):
                there = f"replace(value_json, '\"{name}\"', '\"stranger:{name}\"')"
                study.execute(f"update {table} set value_json = {there}")
    vitnas_says(capsys, "status", "run", code=0)
    vitnas_says(capsys, "report", "run", code=0)
    assert "stranger:" in Path("run/configs/0.yaml").read_text()
    assert not Path("ran").exists()
    line = vitnas_says(capsys, "export", "run", "--knee", "--to", "net")[1]
    assert "the module stranger has no " in line
    assert Path("ran").exists(), "a network cannot be built otherwise"


def test_an_export_whose_mixer_is_not_installed_names_its_package(
    road: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vitnas_says(capsys, "export", str(road), "--knee", "--to", "mine", *BARE, code=0)
    file = Path("mine/config.yaml")
    file.write_text(re.sub(r"token_mixer: \w+", "token_mixer: 'nowhere.at:All'", file.read_text()))
    with pytest.raises(ConfigError, match=r"mine/config\.yaml: .* the package nowhere is not in"):
        vitnas.load("mine")


def test_a_damaged_export_is_one_line(road: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vitnas_says(capsys, "export", str(road), "--knee", "--to", "mine", *BARE, code=0)
    weights = Path("mine/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(DataError, match=r"model\.safetensors: not a safetensors"):
        vitnas.load("mine")
    Path("mine/config.yaml").write_text("stages: 3")
    with pytest.raises(ConfigError, match=r"config\.yaml: stages = 3"):
        vitnas.load("mine")
    with pytest.raises(ConfigError, match="no such file"):
        vitnas.load("nowhere")


def test_another_run_is_not_continued(road: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = str(road.parent / "tiny.yaml")
    line = complaint(capsys, "search", tiny, *SERIAL, "--out", str(road), "--seed", "1")
    assert "is a run of another seed: 0 -> 1; use another --out" in line
    other = space_file({})
    line = complaint(capsys, "search", other, *SERIAL, "--out", str(road))
    assert re.search(r"is a run of another space: model\.groups: .* -> '\[1\]';", line)


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_trials(
    road: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(road, "run")
    tiny, more = str(road.parent / "tiny.yaml"), [*SERIAL[:-3], "4", *SERIAL[-2:]]
    out, _ = vitnas_says(capsys, "search", tiny, *more, "--out", "run", code=0)
    assert "[4/4]" in out
    grown = read_run("run")
    assert grown.complete[:3] == tuple(run.complete)
    assert len(grown.complete) == 4
    vitnas_says(capsys, "search", tiny, *SERIAL, "--out", "run", code=0)
    assert len(read_run("run").complete) == 4


DAMAGE: dict[str, Any] = {
    "garbage": lambda content: b"hello world" * 500,
    "half": lambda content: content[: len(content) // 2],
    "an overwritten page": lambda content: content[:4096] + bytes(4096) + content[8192:],
    "not JSON": lambda content: content.replace(b'{"config":', b'["config":'),
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_study(road: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/study.db").write_bytes(DAMAGE[damage]((road / "study.db").read_bytes()))
    assert "run/study.db: cannot be" in complaint(capsys, "report", "run")
    tiny = str(road.parent / "tiny.yaml")
    _, err = vitnas_says(capsys, "search", tiny, *SERIAL, "--out", "run")
    assert err.startswith("vitnas: run/study.db: cannot be ")
    assert err.count("\n") == 1
