"""Other people's environments as simulators: stepping a restored state is the environment's own step, bit for bit."""

import importlib.util
import random
import re
import subprocess
import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces, wrappers

import uamcts
import uamcts.gym
from uamcts import reference
from uamcts.gym import Simulator, SimulatorError, check_simulator, grid
from uamcts.gym.probe import rng_state

TOY = [("FrozenLake-v1", {"is_slippery": False}), ("CliffWalking-v1", {}), ("Taxi-v4", {})]
CLASSIC = [
    ("CartPole-v1", {}),
    ("CartPole-v1", {"sutton_barto_reward": True}),
    ("MountainCar-v0", {}),
    ("Acrobot-v1", {}),
    ("Pendulum-v1", {}),
    ("MountainCarContinuous-v0", {}),
]
PLAN = uamcts.SearchConfig(iterations=60, rollouts=2, depth=20)


def make(name, **options):
    env = gymnasium.make(name, **options)
    return env, (grid(env.action_space, 3) if isinstance(env.action_space, spaces.Box) else None)


def assert_same_episodes(env, simulator, steps):
    """Plays `env`, and beside it the simulator from the state before each step; returns how many episodes ended."""
    rng, ends, over = random.Random(1), 0, True
    for number in range(steps):
        if over:
            env.reset(seed=100 + number)
            state = simulator.accept(env)
        action = rng.randrange(simulator.num_actions)
        simulator.step(state, rng.randrange(simulator.num_actions))  # goes elsewhere and must leave no trace
        state, reward, terminal = simulator.step(state, action)
        _, expected, terminated, truncated, _ = env.step(simulator.actions[action])
        assert reward == expected
        assert terminal == terminated
        np.testing.assert_array_equal(simulator.features(state), simulator.features(simulator.read(env)))
        ends += terminated
        over = terminated or truncated
    return ends


@pytest.mark.parametrize(("name", "options"), TOY + CLASSIC)
def test_whole_episodes_are_the_environments_own(name, options):
    env, actions = make(name, **options)
    simulator = Simulator(env, actions=actions, trial_steps=100)
    ends = assert_same_episodes(env, simulator, 400)
    assert ends > 3 or name not in ("FrozenLake-v1", "CartPole-v1")
    assert ("table" in simulator.how) == (name in dict(TOY))
    assert ("plain Python" in simulator.how) == (name not in dict(TOY) and name != "MountainCarContinuous-v0")
    assert 0 < simulator.seconds_per_step < 0.01
    assert simulator.how in repr(simulator)


def test_a_changed_environment_is_copied_as_it_is_now():
    env = gymnasium.make("CartPole-v1")
    env.unwrapped.force_mag, env.unwrapped.kinematics_integrator = 3.0, "semi-implicit euler"
    simulator = Simulator(env)
    assert "plain Python" in simulator.how
    assert_same_episodes(env, simulator, 200)
    real = gymnasium.make("CartPole-v1")
    real.reset(seed=3)
    _, _, theirs = simulator.step(simulator.accept(real), 0), real.step(0), real.unwrapped.state
    assert simulator.step(simulator.accept(real), 0)[0] != tuple(theirs)


def test_a_wrong_plain_step_is_found_out(monkeypatch):
    """An environment whose cosine is not Python's is stepped itself."""
    from gymnasium.envs.classic_control import cartpole

    class Shifted:
        def __getattr__(self, name):
            return (lambda x: np.cos(x) * (1 + 1e-12)) if name == "cos" else getattr(np, name)

    monkeypatch.setattr(cartpole, "np", Shifted())
    env = gymnasium.make("CartPole-v1")
    simulator = Simulator(env)
    assert "plain Python" not in simulator.how
    assert "attribute `state`" in simulator.how
    assert_same_episodes(env, simulator, 100)


def test_the_given_environment_is_not_touched():
    for name in ("CartPole-v1", "MountainCarContinuous-v0", "FrozenLake-v1"):
        env, actions = make(name, **({"is_slippery": False} if name == "FrozenLake-v1" else {}))
        env.reset(seed=5)
        luck = env.np_random.bit_generator.state
        simulator = Simulator(env, actions=actions)
        before = simulator.features(simulator.read(env)).tolist()
        reference.search(0, simulator.accept(env), simulator, None, PLAN)
        assert simulator.features(simulator.read(env)).tolist() == before
        assert env.np_random.bit_generator.state == luck


def test_global_randomness_is_left_alone():
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    Simulator(Counter())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


class Counter(gymnasium.Env):
    """A user's environment: a ship in a list of lists, changed in place, with fuel that the observation hides."""

    observation_space = spaces.Discrete(7)
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self, push=1):
        self.push = push
        self.board = [[0] * 7]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board[0][:] = [0] * 7
        self.place, self.fuel = 3, {"left": 6}
        self.board[0][self.place] = 1
        return self.place, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.board[0][self.place] = 0
        self.place = min(max(self.place + self.push * int(action), 0), 6)
        self.board[0][self.place] = 1
        self.fuel["left"] -= 1
        return self.place, float(self.place), self.fuel["left"] == 0, False, {}


def test_a_users_environment_is_deep_copied():
    env = Counter()
    simulator = Simulator(env)
    assert simulator.how == "a deep copy of its attributes"
    assert simulator.actions == [-1, 0, 1]
    assert simulator.trial.changing == {"board", "place", "fuel"}
    state = simulator.reset(seed=0)
    first = simulator.step(state, 2)[0]
    kept = [simulator.step(state, action)[0].data["board"] for action in range(3)]
    simulator.reset(seed=1)  # changes lists in place
    assert kept == [[[0, 0, 1, 0, 0, 0, 0]], [[0, 0, 0, 1, 0, 0, 0]], [[0, 0, 0, 0, 1, 0, 0]]]
    assert simulator.step(first, 2)[1] == 5.0
    assert simulator.features(first).tolist() == [0, 0, 0, 0, 1, 0, 0, 5, 4]  # board, fuel, place
    result = reference.search(0, state, simulator, None, PLAN)
    assert result.action == 2


def test_parameters_of_the_real_environment_are_not_read():
    simulator, real = Simulator(Counter()), Counter(push=2)
    real.reset(seed=0)
    real.step(1)
    state = simulator.accept(real)
    assert (state.data["place"], state.data["fuel"]["left"], state.data["push"]) == (5, 5, 1)
    assert simulator.step(state, 0)[1] == 4.0


def test_an_attribute_that_changes_in_the_real_environment_alone_is_named_once():
    simulator, real = Simulator(Counter()), Counter(push=2)
    real.reset(seed=0)
    simulator.read(real)
    real.push, real.window = 3, object()
    with pytest.warns(UserWarning, match=r"^`push` changed in your environment, but in no trial step.* attributes="):
        simulator.read(real)
    real.push = 4
    simulator.read(real)  # warnings are errors in tests
    other = Simulator(Counter())
    for push in (1, 2, 3):  # three environments that differ from each other, none of which changes
        real = Counter(push)
        real.reset(seed=0)
        other.read(real)


class Treasure(gymnasium.Env):
    """A corridor with a treasure, whose place a reset draws and no step changes."""

    observation_space = spaces.MultiDiscrete([9, 9])
    action_space = spaces.Discrete(2)
    episodes, width = 0, 9

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes, self.place = self.episodes + 1, 4
        self.treasure, self.label = self._draw(), f"episode {seed}"
        return self._get_obs(), {}

    def _draw(self):
        return int(self.np_random.choice([0, 8]))

    def _get_obs(self):
        return np.array([self.place, self.treasure])

    def step(self, action):
        self.place += 1 if action else -1
        return self._get_obs(), float(self.place == self.treasure), self.place in (0, 8), False, {}


class Careless(Treasure):
    """It ignores the seed."""

    def _draw(self):
        return int(np.random.choice([0, 8]))  # noqa: NPY002


@pytest.mark.parametrize("kind", [Treasure, Careless])
def test_what_a_reset_draws_belongs_to_the_state(kind):
    env = kind()
    simulator = Simulator(env)
    assert simulator.trial.changing == {"place", "treasure", "label"}  # and not the number of episodes
    assert simulator.how.endswith("without `label`, which has no effect")
    found = set()
    for seed in range(6):
        env.reset(seed=seed)
        state = simulator.read(env)
        assert simulator.features(state).tolist() == [4, env.treasure]
        assert reference.search(0, state, simulator, None, PLAN).action == (env.treasure == 8)
        found.add(env.treasure)
    assert found == {0, 8}


@pytest.mark.parametrize("way", ["attributes", "functions", "methods"])
def test_ways_of_the_users_own(way):
    class Own(Counter):
        if way == "methods":

            def uamcts_state(self):
                return self.place, self.fuel["left"]

            def uamcts_restore(self, state):
                self.place, self.fuel["left"] = state

    def put(env, state):
        env.place, env.fuel = state[0], {"left": state[1]}

    options = {
        "attributes": {"attributes": ["place", "fuel"]},
        "functions": {"get": lambda env: (env.place, env.fuel["left"]), "set": put},
        "methods": {},
    }[way]
    simulator, env = Simulator(Own(), features=lambda e: [e.place, e.fuel["left"]], **options), Own()
    assert {"attributes": "`place`, `fuel`", "functions": "get and set", "methods": "uamcts_state"}[
        way
    ] in simulator.how
    assert assert_same_episodes(env, simulator, 30) == 5
    assert simulator.inputs(simulator.reset()).tolist() == [3, 6]


def test_an_environment_that_cannot_be_copied_is_taken_over_by_functions_only():
    class Uncopyable(Counter):
        def __init__(self):
            super().__init__()
            self.screen = sys.stdout

    with pytest.raises(SimulatorError, match=r"Uncopyable cannot be copied.*get= and set="):
        Simulator(Uncopyable())
    env = Uncopyable()
    env.reset(seed=0)
    env.step(1)
    get, put = (lambda e: (e.place, e.fuel["left"])), (lambda e, s: e.__dict__.update(place=s[0], fuel={"left": s[1]}))
    simulator = Simulator(env, get=get, set=put)
    assert simulator.takes_over
    assert get(env) == (4, 5)


def test_a_state_that_does_not_come_back_is_an_error():
    steps = []

    class Elsewhere(Counter):
        def step(self, action):
            steps.append(action)  # remembered outside of the environment
            return *super().step(action)[:1], float(len(steps)), False, False, {}

    with pytest.raises(SimulatorError, match="does not come back to a saved state"):
        Simulator(Elsewhere())
    report = check_simulator(Elsewhere())
    assert (report.restorable, report.ok) == (False, False)
    assert "does not come back" in str(report)
    assert "uamcts_restore(state)" in str(report)


class Noisy(Counter):
    source = "np_random"

    def reset(self, *, seed=None, options=None):
        self.rng, self.inner = np.random.default_rng(seed), {"noise": [np.random.default_rng(seed)]}
        return super().reset(seed=seed)

    def step(self, action):
        draw = {
            "np_random": lambda: self.np_random.random(),
            "own": lambda: self.rng.random(),
            "inside": lambda: self.inner["noise"][0].random(),
            "random": random.random,
            "numpy": np.random.random,
        }[self.source]()
        return super().step(action if draw < 0.8 else 0)


def chance_of_a_slip(simulator, draws=400):
    """How often pushing right from the start did nothing, with a generator of our own."""
    state, rng = simulator.reset(seed=0), np.random.default_rng(0)
    places = [simulator.sample(state, 2, rng)[0].data["place"] for _ in range(draws)]
    assert set(places) <= {3, 4}
    return places.count(3) / draws


@pytest.mark.parametrize("source", ["np_random", "own", "inside", "random", "numpy"])
def test_chance_is_found_wherever_it_comes_from(source):
    """Draws have the right probability, repeat with the generator they are given, and leave every other one alone."""
    env = Noisy()
    env.source = source
    env.reset(seed=3)
    before = rng_state(env)
    simulator = Simulator(env)
    assert simulator.kind == "sample"
    assert not hasattr(simulator, "step")
    assert abs(chance_of_a_slip(simulator) - 0.2) < 0.08  # four standard errors
    state = simulator.accept(env)
    one, two = (
        [simulator.sample(state, 2, np.random.default_rng(seed))[0].data["place"] for seed in range(20)]
        for _ in range(2)
    )
    assert one == two
    assert len(set(one)) == 2
    assert rng_state(env) == before, "planning has drawn from a generator of the real environment, or a global one"


def test_draws_without_an_effect_are_no_chance():
    class Idle(Counter):
        def step(self, action):
            self.np_random.random()
            return super().step(action)

    simulator = Simulator(Idle())
    assert simulator.trial.draws
    assert_same_episodes(Idle(), simulator, 20)


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("FrozenLake-v1", {}, "outcomes"),
        ("CliffWalking-v1", {"is_slippery": True}, "outcomes"),
        ("Taxi-v4", {"is_rainy": True}, "outcomes"),
        ("Taxi-v4", {"fickle_passenger": True}, "sample"),
        ("Blackjack-v1", {}, "sample"),
    ],
)
def test_random_environments_are_planned_in(name, options, kind):
    env = gymnasium.make(name, **options)
    report = check_simulator(env)
    assert (report.ok, report.deterministic, report.kind) == (True, False, kind)
    assert f"it is random. {'Its table lists' if kind == 'outcomes' else 'Outcomes are drawn'}" in str(report)
    env.reset(seed=0)
    simulator = Simulator(env)
    assert simulator.kind == kind
    assert reference.search(0, simulator.reset(seed=0), simulator, None, PLAN).iterations == 60


@pytest.mark.parametrize(("name", "options"), [("FrozenLake-v1", {}), ("Taxi-v4", {"is_rainy": True})])
def test_the_outcomes_of_a_table_are_the_environments_own(name, options):
    env = gymnasium.make(name, **options)
    simulator, table = Simulator(env), env.unwrapped.P
    for state, actions in table.items():
        for action, listed in actions.items():
            found = simulator.outcomes(state, action)
            assert sum(p for p, _ in found) == pytest.approx(1.0)
            assert len({outcome for _, outcome in found}) == len(found)
            for probability, (after, reward, over) in found:
                same = sum(p for p, s, r, end in listed if (s, r, end) == (after, reward, over))
                assert probability == pytest.approx(same)


def test_rewards_of_random_tables_go_through_their_wrappers():
    env = wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda r: 3.0 * r - 1.0)
    simulator = Simulator(env)
    assert simulator.kind == "outcomes"
    rewards = {reward for action in range(4) for _, (_, reward, _) in simulator.outcomes(14, action)}
    assert rewards == {2.0, -1.0}


def test_a_table_that_the_environment_does_not_follow_is_not_believed():
    class Off(gymnasium.envs.toy_text.frozen_lake.FrozenLakeEnv):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, reward - 0.1, *rest

    simulator = Simulator(Off())
    assert simulator.kind == "sample"
    assert simulator.sample(simulator.reset(), 0, np.random.default_rng(0))[1] == pytest.approx(-0.1)


def test_sticky_actions_are_drawn():
    """With probability 0.2 the last action is repeated: pushing right after pushing left fails one time in five."""
    env = wrappers.StickyAction(Counter(), 0.2)
    simulator = Simulator(env)
    assert simulator.kind == "sample"
    env.reset(seed=0)
    env.step(-1)
    state, rng = simulator.accept(env), np.random.default_rng(0)
    places = [simulator.sample(state, 2, rng)[0].data[0].data["place"] for _ in range(400)]
    assert set(places) == {1, 3}
    assert abs(places.count(1) / 400 - 0.2) < 0.08


def test_the_likeliest_outcome():
    env = gymnasium.make("FrozenLake-v1", success_rate=0.8)
    simulator = Simulator(env, determinise="likeliest")
    dry = Simulator(gymnasium.make("FrozenLake-v1", is_slippery=False))
    for state, action in ((0, 2), (9, 1), (14, 2), (6, 1)):
        assert simulator.step(state, action) == dry.step(state, action)
    with pytest.raises(ValueError, match="has no table"):
        Simulator(gymnasium.make("CartPole-v1"), determinise="likeliest")


# Wrappers


def test_time_limits_and_observations_are_left_out():
    env = gymnasium.make("CartPole-v1", max_episode_steps=3)
    env = wrappers.TransformObservation(wrappers.RecordEpisodeStatistics(env), lambda o: o * 2, env.observation_space)
    simulator = Simulator(env)
    assert "plain Python" in simulator.how
    observation, _ = env.reset(seed=0)
    state = simulator.accept(env)
    for step in range(10):
        state, _, terminal = simulator.step(state, step % 2)
        assert not terminal
    with pytest.raises(TypeError, match=r"simulator\.read\(env\)"):
        simulator.accept(observation)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1", "MountainCarContinuous-v0"])
def test_rewards_and_actions_go_through_their_wrappers(name):
    env, actions = make(name, **({"is_slippery": False} if name == "FrozenLake-v1" else {}))
    if actions is None:
        last = env.action_space.n - 1
        env = wrappers.TransformAction(env, lambda action: last - action, env.action_space)
    else:
        env = wrappers.RescaleAction(env, np.float32(-0.5), np.float32(0.5))
        actions = grid(env.action_space, 3)
    env = wrappers.TransformReward(wrappers.TransformReward(env, lambda r: r + 1), lambda r: 3.0 * r)
    simulator = Simulator(env, actions=actions)
    words = {"FrozenLake-v1": "table", "CartPole-v1": "plain Python", "MountainCarContinuous-v0": "`state`"}
    assert words[name] in simulator.how  # a wrong order would be found out, and the environment stepped instead
    assert assert_same_episodes(env, simulator, 60) >= (name != "MountainCarContinuous-v0")


def test_a_wrapper_with_a_step_of_its_own_is_part_of_the_state():
    class Tired(gymnasium.Wrapper):
        """Every third push fails."""

        def __init__(self, env):
            super().__init__(env)
            self.pushes = [0]

        def reset(self, **options):
            self.pushes[0] = 0
            return super().reset(**options)

        def step(self, action):
            self.pushes[0] += 1
            return super().step(action if self.pushes[0] % 3 else 0)

    env = gymnasium.wrappers.TimeLimit(Tired(Counter()), 100)
    simulator = Simulator(env)
    assert simulator.how.endswith("what the wrappers remember (Tired)")
    assert assert_same_episodes(env, simulator, 40) == 6
    bare = Counter()
    bare.reset()
    with pytest.raises(TypeError, match="lacks the wrapper Tired"):
        simulator.accept(bare)
    pendulum = gymnasium.make("Pendulum-v1")
    skipping = Simulator(wrappers.MaxAndSkipObservation(pendulum, skip=3), actions=grid(pendulum.action_space, 3))
    assert "MaxAndSkipObservation" in skipping.how


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        (wrappers.NormalizeReward, "NormalizeReward scales rewards"),
    ],
)
def test_wrappers_that_cannot_be_planned_through_are_named(wrapper, words):
    with pytest.raises(SimulatorError, match=words + ".*the environment inside"):
        Simulator(wrapper(gymnasium.make("CartPole-v1")))


# Actions, observations, arguments


def test_actions_are_called_by_the_names_that_the_user_gives():
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    assert Simulator(Counter()).action_names == ("-1", "0", "1")
    assert Simulator(Counter(), action_names=["back", "stay", "on"]).action_names == ("back", "stay", "on")
    agent = uamcts.Agent(env, iterations=5, action_names=("west", "east"))
    agent.act(env)
    assert {line.split()[0] for line in agent.explain().splitlines()[2:4]} == {"west", "east"}
    for wrong in ("we", ["west"], [0, 1]):
        with pytest.raises(ValueError, match=r"action_names is .* one name for each of the 2 actions"):
            uamcts.Agent(env, action_names=wrong)
    for make in (Simulator, uamcts.Agent):
        with pytest.raises(ValueError, match=r"action_names is .*continuous; "):
            make(gymnasium.make("Pendulum-v1"), action_names=["west"])
    with pytest.raises(ValueError, match="action_names is given, but a domain has its own"):
        uamcts.Agent(uamcts.make("two_way"), action_names=["west"])


def test_flattened_actions_and_grids():
    class Many(Counter):
        action_space = spaces.MultiDiscrete([2, 3], start=[0, 5])

        def step(self, action):
            assert self.action_space.contains(action)
            return 0, float(action[0] * 10 + action[1]), False, False, {}

    simulator = Simulator(Many())
    state = simulator.reset()
    assert [simulator.step(state, action)[1] for action in range(6)] == [5, 6, 7, 15, 16, 17]
    points = grid(spaces.Box(np.array([-1, 0]), np.array([1, 2]), dtype=np.float32), (3, 2))
    assert [point.tolist() for point in points] == [[-1, 0], [-1, 2], [0, 0], [0, 2], [1, 0], [1, 2]]
    assert grid(spaces.Box(-1, 1, (1,)), 1)[0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Simulator(gymnasium.make("Pendulum-v1"), actions=[np.array([9.0], np.float32)]), "must lie in"),
        (lambda: Simulator(gymnasium.make("CartPole-v1"), get=lambda e: e.state), "get and set belong together"),
        (lambda: Simulator(gymnasium.make("CartPole-v1"), determinise="mean"), "determinise is 'mean'"),
        (lambda: Simulator(Counter(), attributes=["speed"]), "attributes names 'speed'"),
        (lambda: grid(spaces.Box(-np.inf, np.inf, (1,)), 3), "finite bounds"),
        (lambda: grid(spaces.Box(-1, 1, (2,)), (3,)), "each of 2 dimensions"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    with pytest.raises(TypeError, match=r"give a gymnasium\.Env"):
        Simulator("CartPole-v1")


@pytest.mark.parametrize(("name", "options"), TOY + CLASSIC)
def test_an_observation_is_accepted_where_it_is_the_state(name, options):
    env, actions = make(name, **options)
    simulator = Simulator(env, actions=actions)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        for action in range(5):
            known, seen = simulator.accept(env), simulator.accept(observation)
            np.testing.assert_allclose(simulator.features(seen), simulator.features(known), atol=1e-6)
            observation, *_ = env.step(simulator.actions[action % simulator.num_actions])
    with pytest.raises(TypeError, match="is not a state of"):
        simulator.accept("here")
    with pytest.raises(TypeError, match="its state cannot be read"):
        simulator.accept(gymnasium.make("Blackjack-v1")) if simulator._access.whole else simulator.accept(
            gymnasium.make(name).unwrapped
        )


def test_features_and_inputs_of_toy_text():
    lake, taxi = (Simulator(gymnasium.make(name, **options)) for name, options in (TOY[0], TOY[2]))
    assert lake.features(6).tolist() == [1, 2]
    assert lake.inputs(6).tolist() == np.eye(16)[6].tolist()
    assert lake.action_names == ("left", "down", "right", "up")
    assert taxi.features(taxi._base.encode(3, 1, 4, 2)).tolist() == [3, 1, 4, 2]
    assert np.flatnonzero(taxi.inputs(taxi._base.encode(3, 1, 4, 2))).tolist() == [3, 5 + 1, 10 + 4, 15 + 2]
    assert taxi.inputs(0).shape == (19,)


def test_plans_to_the_goal_of_the_frozen_lake():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    simulator, config = Simulator(env), uamcts.SearchConfig(iterations=1000, rollouts=2, depth=30)
    observation, _ = env.reset(seed=0)
    for step in range(30):
        action = reference.search(step, simulator.accept(observation), simulator, None, config).action
        observation, reward, terminated, _, _ = env.step(action)
        if terminated:
            break
    assert reward == 1.0


# The report


def test_words_for_a_good_environment():
    report = check_simulator(gymnasium.make("CartPole-v1"))
    assert report.ok
    assert report.observation_is_state
    assert not report.exact_observation
    assert report.terminals > 0
    text = str(report)
    for words in (
        "CartPole-v1: can be planned with.",
        "saved and restored: the numbers in its attribute `state`",
        "always came out the same (`step`)",
        "says the state, up to the rounding",
        "2 actions; a step takes",
    ):
        assert words in text
    assert "What to do" not in text


def test_words_for_hidden_states_bad_rewards_and_continuous_actions():
    hidden = check_simulator(Counter())
    assert hidden.ok
    assert hidden.observation_is_state is False
    assert "An observation does not say the whole state: give act and observe simulator.read(env)" in str(hidden)

    class Infinite(Counter):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, -np.inf, *rest

    infinite = check_simulator(Infinite())
    assert not infinite.ok
    assert "rewards that are not finite" in str(infinite)
    assert "ClipReward" in str(infinite)
    pendulum = check_simulator(gymnasium.make("Pendulum-v1"))
    assert pendulum.ok
    assert pendulum.observation_is_state
    assert "Continuous actions; a step takes" in str(pendulum)
    assert "no random episode ended" in str(pendulum)
    lake = check_simulator(gymnasium.make("FrozenLake-v1", is_slippery=False))
    assert lake.exact_observation


# Engines outside of Python


@pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="mujoco is not installed")
@pytest.mark.parametrize(("name", "how"), [("HalfCheetah-v5", "state vector"), ("Ant-v5", "computed from it")])
def test_mujoco_comes_back_bit_for_bit(name, how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log where it is started
    env = gymnasium.make(name)
    env.unwrapped.model.actuator_gear[0] = 0.0  # a dead motor, which a copy must have too
    env.action_space.seed(0)
    simulator = Simulator(env, actions=[env.action_space.sample() for _ in range(4)], trial_steps=30)
    assert how in simulator.how
    assert_same_episodes(env, simulator, 40)


@pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="ale-py is not installed")
def test_atari_comes_back_bit_for_bit():
    import ale_py

    gymnasium.register_envs(ale_py)
    with pytest.raises(SimulatorError, match=r"repeat_action_probability=0\.0"):
        Simulator(gymnasium.make("ALE/Pong-v5"))
    env = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, obs_type="ram")
    simulator = Simulator(env, trial_steps=30)
    assert_same_episodes(env, simulator, 60)
    assert simulator.action_names[:2] == ("noop", "fire")
    assert simulator.inputs(simulator.reset()).max() <= 1


def test_our_own_worlds_can_be_planned_with():
    env = gymnasium.make("uamcts/TwoWay-v0")
    simulator = Simulator(env, trial_steps=20)
    assert "uamcts_state" in simulator.how
    assert simulator.action_names == uamcts.make("two_way").action_names
    assert_same_episodes(env, simulator, 30)


# gymnax


@pytest.fixture(scope="module")
def cart_pole():
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("CartPole-v1")
    return env, params, uamcts.gym.from_gymnax(env, params)


def test_gymnax_steps_are_its_own_and_absorb(cart_pole):
    env, params, simulator = cart_pole
    step, theirs = jax.jit(simulator.step), jax.jit(lambda state: env.step_env(jax.random.key(9), state, 1, params))
    state, steps = simulator.example, 0
    while not env.is_terminal(state, params):
        _, expected, reward, done, _ = theirs(state)
        after = step(state, 1)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), after.state, expected)
        assert (float(after.reward), bool(after.terminal)) == (float(reward), bool(done))
        state, steps = after.state, steps + 1
    assert 5 < steps < 40
    after = step(state, 1)
    assert (float(after.reward), bool(after.terminal)) == (0.0, True)
    jax.tree.map(np.testing.assert_array_equal, after.state, state)
    assert simulator.features(state).shape == simulator.inputs(state).shape == (4,)


def test_gymnax_keeps_its_clock_out_of_the_model(cart_pole):
    env, params, simulator = cart_pole
    late = simulator.example.replace(time=jnp.int32(10_000))
    assert not simulator.step(late, 0).terminal
    limited = uamcts.gym.from_gymnax(env, params, time_limit=True, trial_steps=0)
    assert limited.step(late, 0).terminal
    assert limited.features(late).shape == (5,)


def test_gymnax_plans(cart_pole):
    _, _, simulator = cart_pole
    config = uamcts.SearchConfig(iterations=30, rollouts=2, depth=15)
    falling = simulator.example.replace(theta=jnp.float32(0.15), theta_dot=jnp.float32(0.5))
    result = uamcts.search(jax.random.key(0), falling, simulator.step, None, config, num_actions=simulator.num_actions)
    assert int(result.visits.sum()) == 30
    assert int(result.action) == 1


def test_gymnax_draws_where_there_is_chance():
    """A slippery lake: a step goes on, or slips to either side, a third each; and it can be planned in."""
    gymnax = pytest.importorskip("gymnax")
    simulator = uamcts.gym.from_gymnax(*gymnax.make("FrozenLake-misc"), trial_steps=5)
    assert (simulator.kind, simulator.step) == ("sample", None)
    keys = jax.random.split(jax.random.key(0), 600)
    drawn = jax.jit(jax.vmap(simulator.sample, (None, None, 0)))(simulator.example, jnp.int32(2), keys)
    leaves = np.stack([np.asarray(leaf) for leaf in simulator_leaves(drawn.state)], axis=1)
    _, counts = np.unique(leaves, axis=0, return_counts=True)
    assert counts.size == 3
    assert np.all(np.abs(counts / 600 - 1 / 3) < 0.08)  # four standard errors


def simulator_leaves(states):
    """Everything but the clock."""
    return [leaf for path, leaf in jax.tree_util.tree_leaves_with_path(states) if "time" not in str(path)]


def test_gymnax_refuses_continuous_actions():
    gymnax = pytest.importorskip("gymnax")
    pendulum = gymnax.make("Pendulum-v1")
    with pytest.raises(ValueError, match=r"continuous; give a list, for example actions="):
        uamcts.gym.from_gymnax(*pendulum)


def test_importing_needs_gymnasium_alone():
    program = "import uamcts.gym, sys; print([m for m in ('jax', 'gymnax', 'mujoco', 'ale_py') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, values in {
            "actions": [5, "01", [], [7], {0: 1}],
            "attributes": ["state", 5, [], [5]],
            "features": [5, "all"],
            "inputs": [5],
            "determinise": ["worst", 5],
            "truncation_ends": ["no", 1],
            "trial_steps": [0, 1.5, True, "9"],
            "trial_seconds": [-1, float("nan"), float("inf"), "1"],
        }.items()
        for value in values
    ],
)
def test_wrong_arguments_of_a_simulator_are_named(name, value):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    with pytest.raises((TypeError, ValueError), match=f"{name} (is|has)"):
        uamcts.gym.Simulator(env, **{name: value})


def test_what_is_no_environment_is_refused_by_name():
    with pytest.raises(TypeError, match=r"env is 5; give a gymnasium.Env"):
        uamcts.gym.check_simulator(5)
    with pytest.raises(TypeError, match=r"env is 5, without step_env"):
        uamcts.gym.from_gymnax(5)
    box = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    for points in (1.5, "5", True, [3], [3, 0.5], None, 0, [100, 100]):
        with pytest.raises(ValueError, match="points is"):
            uamcts.gym.grid(box, points)
    many = gymnasium.make("FrozenLake-v1", is_slippery=False)
    many.unwrapped.action_space = gymnasium.spaces.Discrete(10**9)
    with pytest.raises(uamcts.SimulatorError, match="has 1000000000 actions"):
        uamcts.gym.Simulator(many)


def test_a_memory_tells_gymnasium_states_apart_by_all_that_changes():
    """Features that see the row alone: two columns are two states."""
    believed = gymnasium.make("FrozenLake-v1", is_slippery=False)
    agent = uamcts.Agent(uamcts.gym.Simulator(believed), features=lambda state: [state // 4], iterations=5)
    agent.observe(0, 2, 1, reward=0.0, terminal=False)
    agent.observe(1, 2, 1, reward=-3.0, terminal=False)
    assert agent.report().memory.facts == 2
    assert agent.backend.planner.patched.step(0, 2) == (1, 0.0, False)


def test_a_slippery_table_has_a_success_rate():
    """The probabilities that all moves share are one parameter; the other outcomes keep their proportions."""
    lake = uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1", success_rate=0.8))
    assert lake.parameters == {"success_rate": pytest.approx(0.8)}
    surer = lake.with_parameters(success_rate=0.9)
    assert {after: round(chance, 9) for chance, (after, _, _) in surer.outcomes(0, 1)} == {0: 0.05, 4: 0.9, 1: 0.05}
    assert {after: round(chance, 9) for chance, (after, _, _) in lake.outcomes(0, 1)} == {0: 0.1, 4: 0.8, 1: 0.1}
    assert surer.with_parameters(success_rate=1.0).outcomes(0, 1) == [(1.0, (4, 0.0, False))]
    same = uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1", success_rate=0.9))
    for state in range(15):
        for action in range(4):
            expected = {outcome: round(chance, 9) for chance, outcome in same.outcomes(state, action)}
            assert {outcome: round(chance, 9) for chance, outcome in surer.outcomes(state, action)} == expected


def test_a_table_with_equal_chances_means_the_middle_outcome():
    lake = uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1"))
    assert lake.with_parameters(success_rate=1.0).outcomes(0, 1) == [(1.0, (4, 0.0, False))]


def test_a_table_without_slips_has_no_parameters():
    assert uamcts.gym.Simulator(gymnasium.make("Taxi-v4")).parameters == {}
    assert uamcts.gym.Simulator(gymnasium.make("FrozenLake-v1", is_slippery=False)).parameters == {}


def test_an_agent_finds_the_success_rate():
    """Gymnasium's lake, believed to be as slippery as it comes and hardly slippery in reality."""
    world = gymnasium.make("FrozenLake-v1", success_rate=0.9)
    agent = uamcts.Agent(gymnasium.make("FrozenLake-v1"), iterations=60, seed=1)
    rng = np.random.default_rng(0)
    for episode in range(25):
        state, _ = world.reset(seed=episode)
        over = False
        while not over:
            action = int(rng.integers(4))
            after, reward, over, cut, _ = world.step(action)
            agent.observe(state, action, after, reward=reward, terminal=over)
            state, over = after, over or cut
    found = re.search(r"success_rate is about ([\d.]+)", str(agent.report()))
    assert found is not None
    assert 0.8 < float(found[1]) < 1.0
