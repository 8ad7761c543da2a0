"""Colours that can be told apart in greyscale, and by readers who see fewer colours."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from sapp_ppb.report.colours import ACTIVATIONS, CONSTANT, IDLE, OVER_LIMIT, PARAMETERS, shade, text_colour
from sapp_ppb.report.work import Work

CHUNKS = 4
# Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, table 1, severity 1.0: on linear RGB.
BLINDNESS = {
    "none": np.eye(3).ravel(),
    "protanopia": np.array(
        [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998]
    ),
    "deuteranopia": np.array(
        [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881]
    ),
    "tritanopia": np.array(
        [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    """Linear red, green and blue, IEC 61966-2-1."""
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB, for daylight; L* is lightness from 0 to 100."""
    ratio = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a, b):
    """WCAG 2.1 contrast ratio."""
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (a, b))
    return (high + 0.05) / (low + 0.05)


def shades(work):
    return [shade(work, chunk, CHUNKS) for chunk in range(CHUNKS)]


def test_kinds_of_work_lie_in_bands_of_lightness_that_do_not_touch():
    bands = sorted([lab(linear(colour))[0] for colour in colours] for colours in [[IDLE], *map(shades, Work)])
    # Just-noticeable is about 2; 5 stays apart in print.
    assert all(min(lighter) - max(darker) >= 5 for darker, lighter in pairwise(bands))


def test_chunks_of_a_kind_grow_darker():
    for work in Work:
        lightness = [lab(linear(colour))[0] for colour in shades(work)]
        assert all(before - after >= 1.5 for before, after in pairwise(lightness))


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_kinds_of_work_can_be_told_apart_by_readers_who_see_fewer_colours(blindness):
    seen = {work: lab(BLINDNESS[blindness].reshape(3, 3) @ linear(shade(work))) for work in Work}
    assert min(np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(Work, 2)) >= 10


def test_what_is_held_lies_in_bands_of_lightness_too():
    levels = sorted(lab(linear(c))[0] for c in (CONSTANT, PARAMETERS, ACTIVATIONS, IDLE, OVER_LIMIT))
    assert all(after - before >= 5 for before, after in pairwise(levels))


def test_numbers_can_be_read_on_every_shade():
    # 4.5 is what WCAG 2.1, 1.4.3, asks of small text.
    for work in Work:
        assert min(contrast(text_colour(work), colour) for colour in shades(work)) >= 4.5
