"""Online runs of `uamcts.Agent`: one agent a run, in the worlds and from the start states of the other planners."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent import Agent, checkpoint
from uamcts.agent.backend import split_groups
from uamcts.agent.backend_files import arrays_of, take_arrays
from uamcts.agent.simulator_backend import SimulatorBackend
from uamcts.episodes.offline import LONGEST
from uamcts.episodes.online import Step
from uamcts.lab.run.online import PIECE, News
from uamcts.lab.run.units import OnlineUnit
from uamcts.types import PyTree, Transition
from uamcts.uncertainty.learner import RESETS, STEPS, purpose


class Place(NamedTuple):
    """Where in the real world a run is."""

    state: PyTree
    episode: int = 0
    """Episodes that are over."""
    length: int = 0
    """Steps of the present episode."""
    reward: float = 0.0
    """What the present episode has paid."""


class AgentRuns:
    """The runs of an online unit of `agent`, one after the other; the same methods as `online.Runs`."""

    def __init__(self, unit: OnlineUnit):
        self.unit = unit = unit.complete()
        self.domain = unit.world()
        self.interval = unit.learning(self.domain).schedule.interval
        lanes = jax.random.split(jax.random.key(unit.seed), unit.runs)
        self._keys = [jax.random.split(lane)[1] for lane in lanes]  # as `online.Runs` has them: equal start states
        seeds = np.asarray(jax.vmap(lambda lane: jax.random.bits(lane, dtype=jnp.uint32))(lanes)).tolist()
        self.agents = [Agent(self.domain, c=unit.c, seed=seed) for seed in seeds]
        self._reset = jax.jit(lambda key, episode: self.domain.reset(purpose(key, RESETS, episode)))
        self._step = jax.jit(self._world)
        self.places = [self._start(key, 0) for key in self._keys]
        self.steps = 0

    @property
    def episodes(self) -> list[int]:
        """Episodes of each run that are over."""
        return [place.episode for place in self.places]

    def _start(self, key: jax.Array, episode: int) -> Place:
        return Place(jax.device_get(self._reset(key, episode)), episode)

    def _world(self, key: jax.Array, step: jax.Array, state: PyTree, action: jax.Array) -> Transition:
        return self.domain.world(state, action, purpose(key, STEPS, step) if self.domain.random else None)

    def advance(self) -> Iterator[News]:
        """Runs to the end and yields news after every piece. Save the runs only at news with `learned`."""
        while self.steps < self.unit.steps:
            start, due = time.perf_counter(), self.interval - self.steps % self.interval
            piece = min(PIECE, due, self.unit.steps - self.steps)
            said = [[self._advance(run, self.steps + step) for step in range(piece)] for run in range(self.unit.runs)]
            self.steps += piece
            yield self._news(said, piece == due, time.perf_counter() - start)

    def _advance(self, run: int, step: int) -> tuple[float, int, bool, bool]:
        """One real step of one run; returns the first four fields of `Step`."""
        agent, place, key, domain = self.agents[run], self.places[run], self._keys[run], self.domain
        action = agent.act(place.state)
        after = jax.device_get(self._step(key, step, place.state, action))
        paid, over = float(after.reward), bool(after.terminal)
        agent.observe(place.state, action, after.state, reward=paid, terminal=over)
        length, reward = place.length + 1, place.reward + paid
        ended = over or length >= (domain.time_limit or LONGEST)
        self.places[run] = (
            self._start(key, place.episode + 1) if ended else Place(after.state, place.episode, length, reward)
        )
        return reward, length, ended, over

    def _news(self, said: list[list[tuple[float, int, bool, bool]]], learned: bool, seconds: float) -> News:
        columns = [np.array([[one[field] for one in run] for run in said]) for field in range(4)]
        unknown = np.full((*columns[0].shape, self.domain.num_actions), np.nan)
        joined = Step(*columns, np.zeros_like(columns[1]), unknown, unknown)  # type: ignore[arg-type, call-arg]
        nothing = np.full(self.unit.runs, np.nan)
        tau = np.array([agent.tau for agent in self.agents])
        return News(
            self.steps, joined, float(tau[0]), tau, nothing, learned, np.nan, np.nan, np.nan, seconds, self._words()
        )

    def _words(self) -> str:
        """What the agents have found, in the mean."""
        reports = [agent.report(0) for agent in self.agents]
        wrong, seen, left = (
            np.mean([getattr(report, name) for report in reports]) for name in ("wrong", "seen", "remaining")
        )
        words = f"{wrong:.4g} of {seen:.4g} transitions wrong"
        return f"{words}, {left:.4g} with what was fitted" if left < wrong else words

    def save(self, path: Path) -> None:
        """Writes the runs to a file. Resuming from it changes no number."""
        for agent in self.agents:
            _backend(agent).settle()
        tree = {f"run {number}": arrays_of(_backend(agent)) for number, agent in enumerate(self.agents)}
        checkpoint.save(path, {**tree, "places": (self.places, np.int64(self.steps))}, "agent runs", self._about())

    def load(self, path: Path) -> None:
        """Replaces the runs by those in a file of the same unit, which may have been meant for fewer steps."""
        runs = [f"run {number}" for number in range(self.unit.runs)]
        *groups, places = split_groups(checkpoint.read(path, "agent runs", self._about()), (*runs, "places"))
        found, steps = jax.device_get(checkpoint.fill(path, (self.places, np.int64(0)), places))
        self.places = [Place(one.state, int(one.episode), int(one.length), float(one.reward)) for one in found]
        try:
            for agent, arrays in zip(self.agents, groups, strict=True):
                take_arrays(_backend(agent), arrays)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} does not fit these runs: {error}") from None
        self.steps = int(steps)

    def _about(self) -> dict[str, Any]:
        """What a file must agree with: everything that decides the numbers but the length of the runs."""
        identity = self.unit.identity
        return {name: value for name, value in identity.items() if name not in ("experiment", "steps")}


def _backend(agent: Agent) -> SimulatorBackend:
    assert isinstance(agent.backend, SimulatorBackend)  # noqa: S101 (all but the paper's agent have it)
    return agent.backend
