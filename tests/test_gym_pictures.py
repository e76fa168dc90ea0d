"""Pictures of Gymnasium's states: boards of toy texts, and what an environment renders itself."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uamcts.gym


def draw(name, state, **options):
    env = gymnasium.make(name, **options)
    env.reset(seed=0)
    return uamcts.gym.Simulator(env).render(state)


def test_a_frozen_lake_is_a_board():
    board = draw("FrozenLake-v1", 6)
    assert board.shape == (4, 4)
    assert board[1].tolist() == ["ice", "hole", "player", "hole"]
    assert (board[0, 0], board[3, 3]) == ("start", "goal")


def test_the_cliff_is_a_board():
    board = draw("CliffWalking-v1", 24)
    assert board.shape == (4, 12)
    assert board[2, 0] == "player"
    assert board[3].tolist() == ["start", *["cliff"] * 10, "goal"]


def test_taxi_is_a_text():
    """State ((1 * 5 + 2) * 5 + 0) * 4 + 1: the taxi in row 1, column 2, a passenger at R who wants to G."""
    lines = draw("Taxi-v4", 141).split("\n")
    assert lines[1] == "|p: | : :d|"
    assert lines[2] == "| : |T: : |"
    assert draw("Taxi-v4", 157).split("\n")[2] == "| : |t: : |"  # the passenger is in it


class Track(gymnasium.Env):
    """A runner on a track of five places, who draws it."""

    metadata = {"render_modes": ["rgb_array", "ansi"]}
    action_space, observation_space = spaces.Discrete(2), spaces.Box(0, 4, (1,))

    def __init__(self, render_mode=None):
        self.render_mode, self.place, self.drawn = render_mode, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return np.array([0.0], np.float32), {}

    def step(self, action):
        self.place = min(4, max(0, self.place + 2 * action - 1))
        return np.array([self.place], np.float32), float(self.place == 4), self.place == 4, False, {}

    def render(self):
        self.drawn += 1
        if self.render_mode == "ansi":
            return "".join("@" if place == self.place else "." for place in range(5))
        image = np.zeros((2, 5, 3), np.uint8)
        image[:, self.place] = 255
        return image


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_an_environment_draws_itself_in_a_copy(mode):
    env = Track(mode)
    env.reset(seed=0)
    simulator = uamcts.gym.Simulator(env)
    state = simulator.accept(env)
    there, *_ = simulator.step(simulator.step(state, 1)[0], 1)
    pictures = [simulator.render(one) for one in (there, state)]
    found = [one.find("@") if mode == "ansi" else int(one[0, :, 0].argmax()) for one in pictures]
    assert found == [2, 0]
    assert env.drawn == simulator._base.drawn == 0
    assert simulator.features(there).tolist() == [2.0]


def test_what_cannot_be_drawn_has_no_picture():
    env = Track()
    env.reset(seed=0)
    assert uamcts.gym.Simulator(env).render is None

    class Broken(Track):
        def render(self):
            raise ImportError("no library to draw with")

    env = Broken("rgb_array")
    env.reset(seed=0)
    assert uamcts.gym.Simulator(env).render is None
