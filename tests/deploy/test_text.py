"""Tables of a check."""

from __future__ import annotations

from dataclasses import replace

from tests.deploy.made import REMEDY, a_check, checked
from vitnas.deploy.text import WIDTH, _ratio, check_markdown, check_text, is_page


def test_the_terminal_has_80_columns() -> None:
    both = a_check(checked(7), checked(12, 1.5, remedy=REMEDY))
    text = check_text(both)
    assert max(map(len, text.splitlines())) <= WIDTH, text
    assert "trial 7: 1x dwconv 8 > 1x mhsa 8 h1; 12.0 k FLOPs, 3.00 k parameters" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["7", "1", "1", "2", "1", "2.00", "4", "0.500"] in rows
    assert ["12", "90.00", "88.50", "0.25", "−1.50", "90.00", "+0.00", "170", "60", "90"] in rows
    assert ["remedy", "–", "89.80", "0.10", "−0.20", "–", "–", "–", "80", "–"] in rows
    assert ["XNNPACK", "7", "4", "of", "40", "expand", "4"] in rows
    assert "fp16 is not timed" in text
    assert "int8 loses at most a point of top-1 in 1 of 2 networks." in " ".join(text.split())


def test_a_long_list_of_operators_is_wrapped() -> None:
    many = dict.fromkeys(("native_layer_norm", "expand", "index", "where", "full_like"), 3)
    text = check_text(a_check(checked(refused={"XNNPACK": many, "CoreML": {}, "TensorRT": {}})))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(name in text for name in many)


def test_the_remedy_says_what_was_measured() -> None:
    text = " ".join(check_text(a_check(checked(12, 1.5, remedy=REMEDY))).split())
    assert "int8 changes 9.0 % of the answers to training images" in text
    assert "mhsa 3.0, norms 5.0 %. Remedy: mhsa and norms in float (12 operators;" in text
    assert "still loses" not in text
    none = replace(REMEDY, parts=(), nodes=0, form=replace(REMEDY.form, lost=1.5))
    text = " ".join(check_text(a_check(checked(12, 1.5, remedy=none))).split())
    assert "mhsa 3.0, norms 5.0 %. Remedy: none: no part helps." in text
    assert "remedy –" not in text


def test_images_that_are_too_few_to_tell_a_point_are_said() -> None:
    known = a_check(checked(7))
    assert "too few" not in check_text(known)
    (one,) = known.networks
    forms = {**one.forms, "int8": replace(one.forms["int8"], error=2.0)}
    rough = replace(known, num_images=50, networks=(replace(one, forms=forms),))
    text = " ".join(check_text(rough).split())
    assert "These 50 images are too few to tell a point: a change of top-1 is known to" in text
    assert "±3.9 points only" in text


def test_a_busy_machine_is_said() -> None:
    calm = a_check()
    busy = replace(calm, facts={**calm.facts, "load": 7.0})
    assert "The machine was busy (load 7 on 2 cores): long passes" in check_text(busy)
    assert "busy" not in check_text(calm)


def test_ratios_have_three_digits() -> None:
    """Times on a busy machine may be thousands of times apart."""
    shown = [_ratio(value) for value in (0.0612, 8.464, 15.104, 99.96, 486.43, 3961.04)]
    assert shown == ["0.0612", "8.46", "15.1", "100", "486", "3,960"]


def test_a_folder_has_no_trial() -> None:
    text = check_text(a_check(checked(None)))
    assert "folder  batch  threads" in text
    assert "\nnet " in text


def test_a_folder_far_down_leaves_room_in_the_tables() -> None:
    folder = "/scratch/projects/of/somebody/who/has/long/names/" + "deep/" * 8 + "network_of_may"
    found = a_check(checked(None, name=folder, lost=1.5, remedy=REMEDY))
    text = check_text(found)
    assert f"{folder}:1xdwconv" in "".join(text.split())
    rows = [line.split() for line in text.splitlines()]
    assert ["XNNPACK", "networ...", "4", "of", "40", "expand", "4"] in rows
    assert max(map(len, text.splitlines())) <= WIDTH, text


def test_a_page_is_known_again() -> None:
    page = check_markdown(a_check(), "vitnas deploy-check results/digits")
    assert is_page(page.encode()[:4096])
    assert not is_page(b"# My notes\n")
    assert "`vitnas deploy-check results/digits`" in page
    assert "| trial | batch | threads |" in page
