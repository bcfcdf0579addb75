"""Suggesting one network of a parsed space: in what order, what is asked, what is on offer.

The order makes conditions known when they are needed: structure, mixers, groups, what depends on
them, then what belongs to the whole network. An axis that depends on a later one waits for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from vitnas.config.axes import Axis, Choice, FloatRange, IntRange
from vitnas.config.draft import Draft
from vitnas.config.parts import NotSettled
from vitnas.config.trials import Refused, Trial


class _Unknown:
    """The meaning of an option as long as it is not known; equal to no other one."""


def suggest_tree(template: Any, trial: Trial) -> dict[str, Any]:
    """A model's tree with a value from `trial` for every axis that matters.

    Raises:
        Refused: no option of an axis fits what has been answered before.
    """
    draft = Draft(template)
    answers: dict[str, Any] = {}
    while draft.pending:
        axis, matters = _next_axis(draft)
        if not matters:
            draft.leave_out(axis)
            continue
        if axis.name not in answers:
            answers[axis.name] = _ask(axis, draft, trial)
        value = answers[axis.name]
        draft.settle(axis, axis.options[value] if isinstance(axis, Choice) else value)
    return draft.tree


def _next_axis(draft: Draft) -> tuple[Axis, bool]:
    """The first axis whose question can be asked now, and whether it matters.

    If axes wait for each other, one with a single value is settled, else the first that matters.
    """
    waiting: list[int] = []
    single: list[int] = []
    for index, axis in enumerate(draft.pending):
        try:
            matters = draft.matters(axis)
        except NotSettled:
            if isinstance(axis, Choice) and len(axis.options) == 1:
                single.append(index)
            continue
        if not matters or _is_clear(axis, draft):
            return draft.pending.pop(index), matters
        waiting.append(index)
    return draft.pending.pop([*single, *waiting, 0][0]), True


def _is_clear(axis: Axis, draft: Draft) -> bool:
    """Whether the meaning of every option is known."""
    if not isinstance(axis, Choice) or not axis.may_repeat:
        return True
    try:
        draft.meanings(axis)
    except NotSettled:
        return False
    return True


def _ask(axis: Axis, draft: Draft, trial: Trial) -> Any:
    """A number of a range, or the index of a choice's option."""
    if isinstance(axis, Choice):
        return _ask_choice(axis, draft, trial)
    if isinstance(axis, IntRange):
        low, high = _ends(axis, draft)
        if low == high:
            return low
        return trial.suggest_int(axis.name, low, high, step=axis.step, log=axis.log)
    assert isinstance(axis, FloatRange)
    return trial.suggest_float(axis.name, axis.low, axis.high, step=axis.step, log=axis.log)


def _ends(axis: IntRange, draft: Draft) -> tuple[int, int]:
    """The lowest and the highest number on offer, if the field has a limit."""
    is_limit, is_least = (axis.rule.is_limit, axis.rule.is_least) if axis.rule else (False, False)
    if not is_limit and not is_least:
        return axis.low, axis.high
    numbers = range(axis.low, axis.high + 1, axis.step)
    if is_least:
        numbers = numbers[::-1]
    count = bisect_left(numbers, True, key=lambda number: bool(draft.misfit(axis, number)))
    if count == 0:
        problem = draft.misfit(axis, numbers[0])
        raise Refused(str(problem), address=axis.name, value=numbers[0])
    ends = numbers[0], numbers[count - 1]
    return min(ends), max(ends)


def _ask_choice(axis: Choice, draft: Draft, trial: Trial) -> int:
    """Ask for one of the options that fit; of those that mean the same, the first.

    Optuna wants the same categories whenever a name is asked, so a narrowed choice is a parameter
    of its own: `groups@0,1` is `groups` with options 0 and 1. A single option is not asked.
    """
    offered = _on_offer(axis, draft)
    if len(offered) == 1:
        return offered[0]
    if len(offered) == len(axis.options):
        return axis.labels.index(trial.suggest_categorical(axis.name, axis.labels))
    name = axis.name + "@" + ",".join(map(str, offered))
    labels = [axis.labels[index] for index in offered]
    return offered[labels.index(trial.suggest_categorical(name, labels))]


def _on_offer(axis: Choice, draft: Draft) -> Sequence[int]:
    """Indices of the options that fit the network and differ from each other."""
    indices: Sequence[int] = range(len(axis.options))
    if axis.must_fit:
        problems = [draft.misfit(axis, option) for option in axis.options]
        indices = [index for index in indices if problems[index] is None]
        if not indices:
            rule = f"none of {len(problems)} options fits this network; the first: {problems[0]}"
            raise Refused(rule, address=axis.name, value=axis.labels[0])
    return _different(axis, indices, draft) if axis.may_repeat else indices


def _different(axis: Choice, indices: Sequence[int], draft: Draft) -> Sequence[int]:
    """Indices of the options that do not mean the same as an earlier one.

    Axes of one name have one answer, so two options are the same only if they are for each axis.
    """
    tied = [axis, *(other for other in draft.pending if other.name == axis.name)]
    options = list(zip(*(_meanings(other, draft) for other in tied), strict=True))
    kept: list[int] = []
    seen: list[Any] = []
    for index in indices:
        if options[index] not in seen:
            seen.append(options[index])
            kept.append(index)
    return kept


def _meanings(axis: Axis, draft: Draft) -> list[Any]:
    """What each option means in the axis's place, as far as that is known."""
    assert isinstance(axis, Choice)
    try:
        if not draft.matters(axis):
            return [None] * len(axis.options)
        return draft.meanings(axis)
    except NotSettled:
        return [_meaning(axis, option, draft) for option in axis.options]


def _meaning(axis: Axis, option: Any, draft: Draft) -> Any:
    try:
        return draft.meaning(axis, option)
    except NotSettled:
        return _Unknown()
