"""What `vitnas convert` prints: what was read, what that code sets, what was left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vitnas.exported.conversion import Conversion
from vitnas.nn.zoo import zoo_config
from vitnas.nn.zoo.weights import LAYOUTS

PLAIN = Conversion(
    folder=Path("net"),
    config=zoo_config("sret_t"),
    layout=LAYOUTS["sret"],
    file=Path("downloads/a.pth"),
    sha256="0" * 64,
    entry="model",
    tensors=172,
    options={},
    dropped={},
    remarks=(),
)


def test_one_line_where_nothing_else_is_to_be_said() -> None:
    assert PLAIN.text() == "a.pth: 172 tensors of sret_t, none left over"


def test_a_line_for_everything_else() -> None:
    told = replace(
        PLAIN,
        options={"permute": "second", "norm_eps": "1.0e-5"},
        dropped={"total_ops": "a FLOP counter's entry, no weight"},
        remarks=("the weights are those under 'model'",),
    )
    assert told.text().splitlines()[1:] == [
        "  as SReT's code (szq0214/SReT) has it: permute second, norm_eps 1.0e-5",
        "  left out: total_ops (a FLOP counter's entry, no weight)",
        "  the weights are those under 'model'",
    ]
