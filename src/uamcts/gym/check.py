"""`check_simulator`: tries an environment to find out whether you can plan with it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from uamcts.agent.simulator_checks import refuse_batch
from uamcts.arguments import short_repr
from uamcts.gym.fingerprints import fingerprint
from uamcts.gym.probe import Step, Unfit, microseconds, same
from uamcts.gym.simulator import Simulator

ROUNDING = 1e-4
"""A 32-bit observation determines the state to about this precision one step later."""


@dataclass(frozen=True)
class Report:
    """What `check_simulator` found. None means that it was not possible to check. Print it for a summary."""

    name: str
    num_actions: int | None = None
    """None if the actions are continuous, or if there is no simulator."""
    restorable: bool | None = None
    deterministic: bool | None = None
    kind: str | None = None
    """How it is planned in: by "step", "outcomes" or "sample"."""
    observation_is_state: bool | None = None
    """Whether an observation determines the state, so that planning from it predicts what really happens."""
    exact_observation: bool = False
    """Whether it does so bit for bit, and not just up to rounding."""
    finite_rewards: bool | None = None
    steps: int = 0
    terminals: int = 0
    how: str | None = None
    seconds_per_step: float | None = None
    advice: tuple[str, ...] = field(default=())
    """What to do about each problem."""

    @property
    def ok(self) -> bool:
        """Whether you can plan with it."""
        return bool(self.restorable and self.kind and self.finite_rewards)

    def __str__(self) -> str:
        lines = [f"{self.name}: {'can be planned with.' if self.ok else 'cannot be planned with as it is.'}"]
        said = {
            "restorable": {
                True: f"Its state can be saved and restored: {self.how}."
                if self.how
                else "Its state can be saved and restored.",
                False: "It does not come back to a saved state.",
            },
            "deterministic": {
                True: "The same step from the same state always came out the same (`step`).",
                False: "The same step from the same state does not always come out the same: it is random."
                + {
                    "outcomes": " Its table lists all outcomes with their probabilities (`outcomes`).",
                    "sample": " Outcomes are drawn (`sample`).",
                }.get(self.kind or "", ""),
            },
            "observation_is_state": {
                True: "An observation says the state"
                + ("." if self.exact_observation else ", up to the rounding of its numbers."),
                False: "An observation does not say the whole state: give act and observe simulator.read(env).",
            },
            "finite_rewards": {False: "It pays rewards that are not finite numbers."},
        }
        lines += [words[value] for name, words in said.items() if (value := getattr(self, name)) in words]
        if self.steps:
            ends = f"{self.terminals} of them ended an episode" if self.terminals else "none of them ended an episode"
            lines.append(f"Tried on {self.steps} random steps; {ends}.")
        if self.seconds_per_step is not None:
            actions = "Continuous" if self.num_actions is None else str(self.num_actions)
            lines.append(f"{actions} actions; a step takes {microseconds(self.seconds_per_step)}.")
        return " ".join(lines) + "".join(f"\nWhat to do: {sentence}." for sentence in self.advice)


def check_simulator(env: gymnasium.Env, **options: Any) -> Report:
    """Checks whether you can plan with an environment, by trying it on random episodes.

    Args:
        env: The environment.
        **options: Options of `uamcts.gym.Simulator`.

    Returns:
        A report: `report.ok` says whether you can; `print(report)` says why not, and what to do about it.

    Raises:
        TypeError: `env` is not a Gymnasium environment.

    Example:
        ```python
        print(uamcts.gym.check_simulator(gymnasium.make("FrozenLake-v1")))
        ```
    """
    advice: list[str] = []
    refuse_batch("env", env)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"env is {short_repr(env)}; give a gymnasium.Env")
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    try:
        simulator = Simulator(env, **options)
    except Unfit as problem:
        found: dict[str, Any] = {
            "stochastic": {"restorable": True, "deterministic": False},
            "restore": {"restorable": False},
        }.get(problem.kind, {})
        return Report(name, advice=(*advice, str(problem)), **found)
    return _report(simulator, name, advice)


def _report(simulator: Simulator, name: str, advice: list[str]) -> Report:
    """The properties of a simulator that reproduces its trial."""
    trial = simulator.trial
    finite = bool(np.isfinite([step.reward for step in trial.steps]).all())
    if not finite:
        advice.append("clip the rewards, for example with gymnasium.wrappers.ClipReward")
    if not trial.terminals:
        advice.append(
            "no random episode ended by itself; that is fine if the task goes on for ever, else try more steps: "
            "trial_steps=5000, trial_seconds=5"
        )
    if simulator.takes_over:
        advice.append("it cannot be copied, so planning moves this very environment: act in another one")
    observed, exact = _observation_is_state(simulator)
    return Report(
        name,
        num_actions=simulator.num_actions,
        restorable=True,
        deterministic=simulator.kind == "step",
        kind=simulator.kind,
        observation_is_state=observed,
        exact_observation=exact,
        finite_rewards=finite,
        steps=len(trial.steps),
        terminals=trial.terminals,
        how=simulator.how,
        seconds_per_step=simulator.seconds_per_step,
        advice=tuple(advice),
    )


def _observation_is_state(simulator: Simulator) -> tuple[bool | None, bool]:
    """Whether planning from observations predicts the trial's steps, and whether the states are identical."""
    steps, exact, compared = simulator.trial.steps, True, 0
    for earlier, step in itertools.pairwise(steps):
        if earlier.terminal or not _follows(simulator, earlier, step):
            continue
        try:
            state = simulator.accept(earlier.observation)
        except TypeError:
            return False, False
        compared += 1
        exact &= same(*(one if simulator._access.whole else simulator.features(one) for one in (state, step.before)))
        if simulator.kind != "step":
            here, there = simulator.features(state), simulator.features(step.before)
            if not np.allclose(here, there, rtol=ROUNDING, atol=ROUNDING):
                return False, False
            continue
        after, reward, terminal = simulator.step(state, step.action)
        predicted, real = simulator.observation(after), simulator.observation(step.after)
        if terminal != step.terminal or abs(reward - step.reward) > ROUNDING:
            return False, False
        if not np.allclose(predicted, real, rtol=ROUNDING, atol=ROUNDING):
            return False, False
    return (True, exact) if compared else (None, False)


def _follows(simulator: Simulator, earlier: Step, step: Step) -> bool:
    """Whether two steps of the trial follow each other without a reset."""
    if simulator._access.whole:
        return same(earlier.after, step.before)
    return fingerprint(getattr(earlier.after, "data", earlier.after)) == fingerprint(
        getattr(step.before, "data", step.before)
    )
