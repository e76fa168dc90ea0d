"""The agent behind NS-Gym's interface, in a stand-in for its wrapper: same observations, same planning environments."""

import copy
import re

import gymnasium
import numpy as np
import pytest

import uamcts.gym
from uamcts.gym.ns_gym import bare_environment


class ChangingLake(gymnasium.Wrapper):
    """FrozenLake whose success rate changes at the first step, as NS-Gym's wrappers do it.

    `level`: 0, nothing is told; 1, that it changed; 2, by how much, and the planning environment is up to date.
    """

    def __init__(self, believed, real, level):
        super().__init__(gymnasium.make("FrozenLake-v1", success_rate=believed, max_episode_steps=60))
        self.old = copy.deepcopy(self.unwrapped.P)
        self.new = gymnasium.make("FrozenLake-v1", success_rate=real).unwrapped.P
        self.level, self.change = level, real - believed
        self.unwrapped.get_planning_env = self.get_planning_env

    def observe(self, state, changed):
        return {
            "state": state, "relative_time": self.time, "env_change": {"P": int(changed and self.level > 0)},
            "delta_change": {"P": self.change if changed and self.level > 1 else 0.0},
        }  # fmt: skip

    def reset(self, seed=None):
        state, info = self.env.reset(seed=seed)
        self.time, self.unwrapped.P = 0, self.old
        return self.observe(state, False), info

    def step(self, action):
        self.unwrapped.P = self.new
        state, reward, over, cut, info = self.env.step(action)
        self.time += 1
        return self.observe(state, self.time == 1), reward, over, cut, info

    def get_planning_env(self):
        twin = copy.copy(self)
        twin.env = copy.copy(self.unwrapped)
        twin.env.P = self.new if self.level > 1 and self.time else self.old
        return twin


def live(env, agent, episodes):
    rewards = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        reward, over = None, False
        while not over:
            action = agent.get_action(observation, env.get_planning_env(), reward=reward, done=False)
            assert env.action_space.contains(action)
            observation, reward, ended, cut, _ = env.step(action)
            over = ended or cut
        agent.finish(observation, reward, ended)
        rewards.append(reward)
    return rewards


def test_it_learns_from_what_it_is_shown():
    """Every step but those between episodes is a transition; the last ones come with `finish`."""
    env, agent = ChangingLake(0.8, 0.8, 0), uamcts.gym.NsGymAgent(iterations=20)
    live(env, agent, 3)
    seen = agent.agent.experience
    assert any(one.terminal for one in seen)
    assert all(one.next_state in {after for _, after, _, _ in env.new[one.state][one.action]} for one in seen)


def test_it_takes_over_a_planning_environment_that_is_up_to_date():
    env, agent = ChangingLake(0.4, 1.0, 2), uamcts.gym.NsGymAgent(iterations=60)
    rewards = live(env, agent, 4)
    assert rewards[1:] == [1.0, 1.0, 1.0]
    assert "success_rate" not in str(agent.agent.report())  # nothing is left to correct


def test_it_finds_an_untold_change_by_itself():
    env, agent = ChangingLake(0.4, 1.0, 0), uamcts.gym.NsGymAgent(iterations=60, parameters=["success_rate"])
    env.persistent_params = True  # what is learned in one episode holds in the next
    assert np.mean(live(env, agent, 6)[2:]) == 1.0
    found = re.search(r"success_rate is about ([\d.]+)", str(agent.agent.report()))
    assert float(found[1]) > 0.9


@pytest.mark.parametrize("persistent", [False, True])
def test_an_episode_begins_with_the_world_as_it_was_unless_changes_persist(persistent):
    env, agent = ChangingLake(0.8, 0.8, 0), uamcts.gym.NsGymAgent(iterations=5)
    env.persistent_params = persistent
    live(env, agent, 1)
    seen = len(agent.agent.experience)
    observation, _ = env.reset(seed=1)
    agent.act(observation, env.get_planning_env())
    assert len(agent.agent.experience) == (seen if persistent else 0)
    assert seen > 0


def test_the_planning_environment_is_left_alone():
    env = ChangingLake(0.5, 0.9, 0)
    env.reset(seed=0)
    planning = env.get_planning_env()
    bare = bare_environment(planning)
    assert "get_planning_env" not in vars(bare)
    uamcts.gym.NsGymAgent(iterations=5).act({"state": 0, "relative_time": 0}, planning)
    assert planning.unwrapped.s == env.unwrapped.s
    assert planning.unwrapped.P is env.old


def test_what_is_no_observation_is_refused():
    with pytest.raises(ValueError, match="obs is 3; give an observation of NS-Gym"):
        uamcts.gym.NsGymAgent().act(3, gymnasium.make("FrozenLake-v1"))


class Bridge(gymnasium.Env):
    """Three cells in a row; like NS-Gym's Bridge it draws slips itself, and has its table as a property."""

    nrow, ncol = 1, 4
    observation_space, action_space = gymnasium.spaces.Discrete(4), gymnasium.spaces.Discrete(2)

    def __init__(self, forward):
        self.P, self.s = [forward, 1 - forward], 1

    @property
    def transition_matrix(self):
        ends = {0: -1.0, 3: 1.0}
        moves = {
            cell: {
                action: [(self.P[turn], cell + step * (1 - 2 * turn), ends.get(cell + step * (1 - 2 * turn), 0.0),
                          cell + step * (1 - 2 * turn) in ends) for turn in (0, 1)]
                for action, step in ((0, -1), (1, 1))
            }
            for cell in (1, 2)
        }  # fmt: skip
        return moves | {cell: {a: [(1.0, cell, reward, True)] for a in (0, 1)} for cell, reward in ends.items()}


def test_an_environment_with_a_table_of_its_own_is_planned_in_by_that_table():
    """Told nothing, the agent sees that moves go the other way round, and turns round."""
    agent = uamcts.gym.NsGymAgent(iterations=60, gamma=0.9, parameters=["success_rate"])
    table = bare_environment(Bridge(0.9))
    table.reset(seed=0)
    assert table.step(1)[0] == 2
    assert agent.act({"state": 1, "relative_time": 0}, Bridge(0.9)) == 1
    for time in range(1, 10):
        agent.act({"state": 1, "relative_time": 2 * time}, Bridge(0.9))
        agent.finish({"state": 0}, -1.0, True) if agent._last[1] == 1 else agent.finish({"state": 2}, 0.0, False)
    assert agent.act({"state": 1, "relative_time": 99}, Bridge(0.9)) == 0


def test_every_change_of_which_the_amount_is_told_is_taken_over():
    """What was seen before a change is forgotten: it would pass for an error of the new simulator."""
    agent, env = uamcts.gym.NsGymAgent(iterations=5), ChangingLake(0.5, 0.9, 2)
    env.reset(seed=0)
    planned = []
    for time, change in enumerate((0.0, 0.1, 0.1, 0.0)):
        agent.act({"state": 0, "relative_time": time, "delta_change": {"P": change}}, env.get_planning_env())
        planned.append(agent.agent.backend)
    assert planned[0] is not planned[1] is not planned[2] is planned[3]
    assert len(agent.agent.experience) == 1
