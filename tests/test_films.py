"""Films of episodes: what is on them, as GIF and as SVG."""

import re
import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import uamcts
from uamcts import colours
from uamcts.cli import app
from uamcts.domains.pictures import Board
from uamcts.lab.console import films
from uamcts.lab.console.films import Film, Scene

SVG = "{http://www.w3.org/2000/svg}"


def board(place, wrong=(2,)):
    """A row of five cells: a paddle and a brick, with broken cells."""
    channels = np.zeros((1, 5, 2), bool)
    channels[0, 4, 0] = channels[0, place, 1] = True
    broken = np.zeros((1, 5), bool)
    broken[0, list(wrong)] = True
    return Board.of(channels, ("brick", "paddle"), ("brick", "paddle"), broken)


@pytest.fixture(scope="module")
def film():
    places = (0, 1, 2, 1)
    frames = [
        [Scene("corrupted", 0.0, step, board(place)), Scene("combined", step / 2, step, board(0), "over" * (step == 3))]
        for step, place in enumerate(places)
    ]
    return Film("A row", "a paddle & a brick", frames)


def shown_at(element, moment):
    """Whether an element is visible at this share of the film."""
    animation = element.find(f"{SVG}animate")
    if animation is None:
        return True
    times = [float(time) for time in animation.get("keyTimes").split(";")]
    values = animation.get("values").split(";")
    assert times[0] == 0
    assert times == sorted(times)
    assert len(times) == len(values)
    return values[np.searchsorted(times, moment, side="right") - 1] == "visible"


def test_an_svg_parses_moves_and_is_hatched(film, tmp_path):
    films.write_svg(tmp_path / "film.svg", film)
    root = ET.parse(tmp_path / "film.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert len(list(root.iter(f"{SVG}animate"))) > 5
    assert sum(one.get("fill") == "url(#broken)" for one in root.iter(f"{SVG}rect")) == 3  # two boards and the legend
    total = films.SECONDS * 3 + films.HOLD
    for number, column in enumerate((0, 1, 2, 1)):
        moment = (films.SECONDS * number + 0.01) / total
        said = {one.text for one in root.iter(f"{SVG}text") if shown_at(one, moment)}
        assert {"A row", "MCTS", "UA-MCTS", f"step {number}", f"{number / 2:g}"} <= said
        assert ("over" in said) == (number == 3)
        yellow = [one for one in root.iter(f"{SVG}rect") if one.get("fill") == colours.PLAYER and shown_at(one, moment)]
        places = sorted(float(one.get("x")) for one in yellow if float(one.get("y")) < float(root.get("height")) - 40)
        assert int((places[0] - films.SPACE) // 40) == column


def test_a_gif_shows_every_frame_and_names_planner_score_and_step(film, tmp_path):
    films.write_gif(tmp_path / "film.gif", film, comment="where from")
    frames, size = films.lay_out(film)
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.size == size
        assert picture.n_frames == 4
        assert picture.info["comment"] == b"where from"
        assert picture.info["duration"] == 120
        first = np.asarray(picture.convert("RGB")).astype(int)
    for colour in (colours.PLAYER, colours.HATCH, colours.BOARD, colours.GRID):
        assert (abs(first - colours.rgb(colour)).max(axis=-1) < 12).any(), colour
    said = [{shape.text for shape in shapes} for shapes in frames]
    assert {"MCTS", "trusts its wrong model", "score", films.BROKEN.format("broken"), "brick", "paddle"} <= said[0]
    assert {"step 3", "over"} <= said[3]


def test_texts_of_a_film_do_not_collide():
    """With the widths of the font that the GIF is drawn in."""
    domain = uamcts.make("space_invaders")
    state = domain.reset(jax.random.key(0))
    for algorithm in ("true", "backpropagation", "trust"):
        scene = Scene(algorithm, 1234.5, 1000, domain.board(state), "over: its model was wrong")
        frames, (width, height) = films.lay_out(Film("Title", domain.summary, [[scene, scene]]))
        boxes = []
        for shape in frames[0]:
            if shape.text:
                wide = films._font(shape.height, shape.kind in ("bold", "score")).getlength(shape.text)
                left = shape.x - wide if shape.kind in ("score", "small") else shape.x
                top, bottom = shape.y - 0.8 * shape.height, shape.y + 0.1 * shape.height
                boxes.append((left, top, left + wide, bottom, shape.text))
                assert 0 <= left <= left + wide <= width, shape.text
                assert 0 <= shape.y <= height
        for number, one in enumerate(boxes):
            for other in boxes[:number]:
                apart = one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
                assert apart, (one, other)


def test_play_writes_both(tmp_path):
    gif, svg = tmp_path / "x.gif", tmp_path / "x.svg"
    arguments = ["play", "two_way", "--steps", "3", "--algorithm", "random", "--quiet"]
    result = CliRunner().invoke(app, [*arguments, "--gif", str(gif), "--svg", str(svg)])
    assert result.exit_code == 0, result.output
    assert re.search(r"x\.gif: 4 frames\n.*x\.svg: 4 frames", result.stdout)
    with Image.open(gif) as picture:
        assert picture.n_frames == 4
    text = svg.read_text()
    assert "2-Way GridWorld" in text
    assert uamcts.make("two_way").summary.split(";")[0] in text
    ET.fromstring(text)
