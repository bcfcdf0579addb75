"""Printed figures and the sizes of the built networks: `vitnas zoo` and docs/published.md."""

from __future__ import annotations

from vitnas.columns import columns
from vitnas.config.notation import human
from vitnas.cost.closed_form import closed_form
from vitnas.nn.zoo.names import TrainedBy, printed, zoo_config

_HEAD = """\
# The papers' models: printed and built

`vitnas zoo --table` makes this page; do not edit it. Parameters are in millions. FLOPs are in G
multiply-adds of one image, counted as fvcore does, with norms.

- *printed* has the paper's own digits, or a dash if the paper gives none. SKA's Table 2 prints
  twice the multiply-adds; they are halved here.
- *built* is counted from the model file by closed form. Tests compare it with fvcore's count of
  the built network.
- A printed size is **bold** if it differs from *built* by more than one in its last digit. The
  row says why.
- *top-1* is what the paper prints for ImageNet-1k, in percent, with its table. It was not measured
  here. No paper names other training images. Images have 224 px. Where the row says 384 or 512 px,
  the network was trained at 224 px first. *Distilled*: by the outputs of a RegNetY-16GF and not by
  the labels. *DeiT's recipe* (without repeated augmentation) replaces DeepViT's own. *160 epochs*
  are about half of a training; SKA's Table 5 compares placements by them.

`vitnas zoo NAME` prints a model's file, and `vitnas.nn.zoo.zoo_config(NAME)` is its configuration.
After `import vitnas` timm builds it: `timm.create_model("sret_t", num_classes=10, img_size=384)`.
If timm has a model of the same name, ours has a prefix in timm: `vitnas_caformer_s18`.

![The printed top-1 against FLOPs and parameters]({picture})

The picture has a mark for each printed top-1, at the size that is counted here: some printed sizes
are impossible, and a dotted line leads to those that are more than 10 % away. Each row of a paper
is there once: 84.3 % is at `sret_star_s_512`, which has its FLOPs, and 82.7 % and 83.7 % at
`sret_b`. After 160 epochs nothing is drawn. `vitnas zoo --plot {picture}` draws it; a name that
ends in `.svg` makes an SVG.

| name | source | top-1 printed | params printed | built | FLOPs printed | built | why they differ |
|---|---|---|--:|--:|--:|--:|---|
"""
_FOOT = """
SReT's Table 12 prints 76.1, 76.8 and 82.0 % for SReT-T, -TL and -S. By Table 5 these are the
networks without sliced groups. Its figures of SReT-B may be, too. It also prints 84.8 % for a
distilled SReT-B at 384 px.

SReT-ExT (4.0 M, 0.7 G, 74.0 %) is missing: neither the paper nor its code gives its widths.

SKA's Table 3 prints 512 G for a whole detector with CSKAFormer-S18. At 800 x 1344 px, the backbone
alone has {detector:,.0f} G multiply-adds. Most of them are in stage 2, where the convolutions
of the keys and the maps grow with the square of 16,800 tokens.
"""
_PICTURE = "published.png"
_TRAININGS: dict[TrainedBy, str] = {
    "plain": "",
    "distilled": " distilled",
    "deit": " with DeiT's recipe",
    "short": " after 160 epochs",
}


def agrees(figure: str | None, built: float) -> bool:
    """Whether a printed figure differs by at most one in its last digit; True without a figure."""
    if figure is None:
        return True
    decimals = len(figure.partition(".")[2])
    return abs(float(figure) - built) <= 1.0001 * 0.1**decimals


def published_page() -> str:
    """docs/published.md."""
    return _HEAD.format(picture=_PICTURE) + "".join(map(_row, printed())) + _foot()


def _foot() -> str:
    detector = closed_form(zoo_config("cskaformer_s18", img_size=[800, 1344]))
    return _FOOT.format(detector=detector.flops / 1e9)


def zoo_list() -> str:
    """One line for each model: name, parameters, FLOPs, source."""
    rows = [("name", "params", "FLOPs", "source")]
    for name, entry in printed().items():
        cost = closed_form(zoo_config(name))
        rows.append((name, human(cost.num_params), human(cost.flops), entry.source))
    return "\n".join(columns(rows, left=(0, -1)))


def _row(name: str) -> str:
    entry, cost = printed()[name], closed_form(zoo_config(name))
    params, flops = cost.num_params / 1e6, cost.flops / 1e9
    cells = [
        f"`{name}`",
        entry.source.replace("*", "\\*"),
        _top1(name),
        _printed(entry.params, params),
        f"{params:.3f}",
        _printed(entry.flops, flops),
        f"{flops:.3f}",
        entry.why.replace("*", "\\*"),
    ]
    return "| " + " | ".join(cells) + " |\n"


def _printed(figure: str | None, built: float) -> str:
    if figure is None:
        return "–"
    return figure if agrees(figure, built) else f"**{figure}**"


def _top1(name: str) -> str:
    """`75.97 (Table 7); 77.6 distilled (Table 5)`."""
    figures = (
        f"{one.percent}{_TRAININGS[one.training]} ({one.where})" for one in printed()[name].top1
    )
    return "; ".join(figures) or "–"
