"""The colours of figures and boards can be told from what they lie on."""

import itertools

import pytest

from uamcts import colours


def luminance(colour):
    """The relative luminance of WCAG 2.2."""
    parts = [value / 255 for value in colours.rgb(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("page", [colours.PAPER, colours.NIGHT])
def test_planners_can_be_seen_on_light_and_on_dark_pages(page):
    found = {name: contrast(colour, page) for name, colour in colours.PLANNERS.items()}
    found |= {colour: contrast(colour, page) for colour in colours.OTHERS}
    assert min(found.values()) >= 3, found


def test_things_can_be_seen_on_a_board():
    for colour in {*colours.THINGS.values(), *colours.MORE_THINGS, colours.HATCH}:
        assert contrast(colour, colours.BOARD) >= 3, colour
    assert contrast(colours.CHALK, colours.BOARD) >= 7  # text
    assert contrast(colours.PLAYER, colours.HATCH) >= 1.5  # the player in a hatched cell


def test_planners_differ_from_each_other():
    assert len(set(colours.PLANNERS.values())) == len(colours.PLANNERS)
    for one, other in itertools.combinations(colours.PLANNERS.values(), 2):
        apart = sum(abs(a - b) for a, b in zip(colours.rgb(one), colours.rgb(other), strict=True))
        assert apart > 60, (one, other)


def test_unknown_things_get_colours_of_their_own():
    found = colours.things(("goal", "lava", "mud", "agent"))
    assert (found[0], found[3]) == (colours.THINGS["goal"], colours.PLAYER)
    assert len(set(found)) == 4
    assert len(colours.things((), 25)) == 25
