"""What other packages add: names that they announce and paths that files name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vitnas import plugins
from vitnas.errors import ConfigError

GROUP = "vitnas.mixers"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package `parrots` that announces `loud`; its folder."""
    folder, facts = tmp_path / "parrots", tmp_path / "parrots-1.0.dist-info"
    folder.mkdir()
    facts.mkdir()
    (folder / "__init__.py").touch()
    (folder / "birds.py").write_text("class Loud: pass\n")
    (folder / "broken.py").write_text("raise OSError('first\\nsecond')\n")
    (folder / "needs.py").write_text("import no_such_library.at_all\n")
    (folder / "leaves.py").write_text("import sys; sys.exit(0)\n")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: parrots\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{GROUP}]\nloud = parrots.birds:Loud\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.announced.cache_clear()
    yield folder
    plugins.announced.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "parrots"]:
        del sys.modules[name]


def test_an_announced_name_stands_for_a_path(package: Path) -> None:
    assert plugins.announced(GROUP)["loud"] == "parrots.birds:Loud"
    assert plugins.path_of("loud", GROUP) == "parrots.birds:Loud"
    assert plugins.path_of("parrots.birds:Loud", GROUP) == "parrots.birds:Loud"
    assert "parrots" not in sys.modules
    assert plugins.load("parrots.birds:Loud").__name__ == "Loud"


def test_a_name_that_nobody_announces_is_told_the_nearest(package: Path) -> None:
    with pytest.raises(ConfigError) as told:
        plugins.path_of(
            "lout", GROUP, ["mhsa"], what="token mixer", address="stages[0].token_mixer"
        )
    line = "stages[0].token_mixer = 'lout': no such token mixer (nearest: loud)"
    assert str(told.value) == line
    with pytest.raises(ConfigError, match=r"no such token mixer; known are mhsa, .*loud"):
        plugins.path_of("xyzzy", GROUP, ["mhsa"], what="token mixer")


@pytest.mark.parametrize(
    "path",
    ["os:system('x')", "a b:C", "a:b:C", ":C", "a:", "../a:C", "a.:C", "a\x1b[2J:C", "pärrot:C"],
)
def test_a_path_with_odd_characters_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"a path is package\.module:Name") as told:
        plugins.path_of(path, GROUP, address="token_mixer")
    assert "\x1b" not in str(told.value)


def test_a_script_is_refused() -> None:
    with pytest.raises(ConfigError, match="put the class into a file of its own"):
        plugins.path_of("__main__:Mine", GROUP)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("no_such_package.a:B", "the package no_such_package is not installed here"),
        ("parrots.no:B", r"the package parrots has no module parrots\.no"),
        ("parrots.birds.no:B", r"importing parrots\.birds\.no failed|has no module"),
        ("parrots.birds:Load", r"has no Load \(nearest: parrots\.birds:Loud\)"),
        ("parrots.needs:B", "the package parrots needs no_such_library, which is not installed"),
        ("parrots.broken:B", "importing parrots.broken failed: OSError: first second"),
        ("parrots.leaves:B", "importing parrots.leaves failed: SystemExit"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(package: Path, path: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as told:
        plugins.load(path, address="stages[0].token_mixer")
    assert str(told.value).startswith(f"stages[0].token_mixer = '{path}': ")
    assert "\n" not in str(told.value)


def test_closed_is_known_inside_alone() -> None:
    assert not plugins.is_closed()
    with plugins.closed():
        assert plugins.is_closed()
    assert not plugins.is_closed()
