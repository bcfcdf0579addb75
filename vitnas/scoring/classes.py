"""Which class of a network is which class of the images: by name, or by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vitnas.errors import ConfigError, nearest_name, printable, shorten

_SYNSETS = 1000


def matched(
    model: str, outputs: int, names: Sequence[str], data: str, classes: Sequence[str]
) -> tuple[tuple[int, ...], str]:
    """The output of the network for each class of the images, and a remark.

    By name where both have names, in whatever order; then images may hold some of the classes. A
    side without names (a network without labels.txt, a data set of numbers) is matched by number,
    and both then have equally many. Of a network of 1,000 outputs without names they are
    ImageNet's where the images' classes are.

    Args:
        model, data: what they are called, for errors.
        outputs: of the network.
        names: of its classes; may be empty.
        classes: of the images, in the order of their numbers.

    Raises:
        ConfigError: they are other classes, and names both; or two have one name.
    """
    wanted = [printable(name) for name in classes]
    if not names and outputs == _SYNSETS:
        names = _imagenet(wanted)
    if not names or (_are_numbers(wanted) and not set(wanted) <= set(names)):
        if outputs != len(wanted):
            rule = f"has {outputs} classes, and {data} has {len(wanted)}"
            raise ConfigError(rule, address=model, nearest=None)
        return tuple(range(outputs)), _by_number(model, names, data, wanted)
    if list(names) == wanted:
        return tuple(range(outputs)), ""  # also where two of them look alike
    ours, theirs = Counter(wanted), Counter(names)
    if twice := [name for name in wanted if max(ours[name], theirs[name]) > 1]:
        rule = f"two classes are called '{twice[0]}' here or in {data}; give one another name"
        raise ConfigError(rule, address=model)
    places = {name: number for number, name in enumerate(names)}
    if strange := [name for name in wanted if name not in places]:
        rule = f"has {_listed(names)}; {data} has {_listed(wanted)}, and '{strange[0]}' is not one"
        rule += " of the first"
        raise ConfigError(rule, address=model, nearest=nearest_name(strange[0], names))
    found = tuple(places[name] for name in wanted)
    return found, _remark(found, outputs)


def _by_number(model: str, names: Sequence[str], data: str, wanted: Sequence[str]) -> str:
    """What is said where only one side has names."""
    if bool(names) != _are_numbers(wanted):
        return ""
    remark = f"{data if names else model} has no names of classes: they are matched by number"
    other = [place for place, name in enumerate(wanted) if name.isdigit() and name != str(place)]
    if other:  # folders are sorted as text: 0, 1, 10, 2
        remark += f", and number {other[0]} is '{wanted[other[0]]}'"
    return remark


def _remark(found: Sequence[int], outputs: int) -> str:
    if len(found) < outputs:
        some = f"{len(found)} of the network's {outputs} classes"
        return f"the images are of {some}; an answer with another one is wrong"
    if list(found) != sorted(found):
        return "the classes stand in another order, and are matched by name"
    return ""


def _are_numbers(names: Sequence[str]) -> bool:
    return all(name == str(number) for number, name in enumerate(names))


def _imagenet(wanted: Sequence[str]) -> tuple[str, ...]:
    """ImageNet's thousand names, where the images' classes are some of them."""
    from timm.data import ImageNetInfo

    names = tuple(ImageNetInfo("imagenet-1k").label_names())
    return names if set(wanted) <= set(names) else ()


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} classes {shorten(list(names))}"
