"""`uamcts run --algorithm agent`: `uamcts.Agent` as a planner of the lab, with its units, files and statistics."""

import jax
import numpy as np
import pytest
from rich.console import Console
from tiny_runs import same

import uamcts
from uamcts import names
from uamcts.lab.console.run_options import RunOptions
from uamcts.lab.run.agents import AgentRuns
from uamcts.lab.run.compute import compute_unit
from uamcts.lab.run.engines import make_engine
from uamcts.lab.run.grid import offline_grid, online_grid, run_grid
from uamcts.lab.run.online import Runs
from uamcts.lab.run.units import OnlineUnit
from uamcts.uncertainty.learner import RESETS, purpose


def unit(domain="two_way", **settings):
    return OnlineUnit.with_defaults(domain, "agent", **{"runs": 2, "steps": 50, "interval": 20, **settings})


def test_a_run_is_an_agent_in_a_loop():
    """`uamcts.Agent(domain)` by hand, from the start states of every other planner: the same episodes."""
    mine = unit(interval=100)
    (news,) = AgentRuns(mine).advance()
    domain, lane = mine.world(), jax.random.split(jax.random.key(mine.seed), mine.runs)[1]
    key, seed = jax.random.split(lane)[1], int(jax.random.bits(lane))
    agent, episode, length, paid = uamcts.Agent(domain, seed=seed), 0, 0, 0.0
    state = domain.reset(purpose(key, RESETS, 0))
    others = Runs(OnlineUnit.with_defaults("two_way", runs=2)).runs.state
    assert jax.tree.all(jax.tree.map(lambda ours, theirs: np.array_equal(ours, theirs[1]), state, others))
    for step in range(mine.steps):
        action = agent.act(state)
        after = domain.world(state, action)
        agent.observe(state, action, after.state, reward=after.reward, terminal=after.terminal)
        length, paid, state = length + 1, paid + float(after.reward), after.state
        over = bool(after.terminal) or length == domain.time_limit
        assert (news.said.length[1, step], news.said.reward[1, step], news.said.ended[1, step]) == (length, paid, over)
        if over:
            episode, length, paid = episode + 1, 0, 0.0
            state = domain.reset(purpose(key, RESETS, episode))
    assert episode > 1


@pytest.mark.parametrize("domain", ["two_way_icy", pytest.param("frozen_lake", marks=pytest.mark.long)])
def test_an_interrupted_run_resumes_without_a_trace(domain, tmp_path):
    mine, shares = unit(domain), []
    (tmp_path / "whole").mkdir()
    whole = compute_unit(mine, lambda share, words: None, tmp_path / "whole")
    assert len(whole["reward"]) > 1

    class Crash(Exception):
        pass

    def crash(share, words):
        if share > 0.5:
            raise Crash

    with pytest.raises(Crash):
        compute_unit(mine, crash, tmp_path)
    resumed = compute_unit(mine, lambda share, words: shares.append(share), tmp_path)
    assert shares[0] > 0.5, "it began anew"
    assert same(resumed, whole)


def test_it_stands_beside_other_planners_in_one_grid(tmp_path):
    grid = online_grid(["two_way"], ["corrupted", "agent"], ["none"], [], 2, 60, None, None)
    summary = run_grid(grid, "both", 0, tmp_path, make_engine("local"), Console(quiet=True))
    rows = {(row["algorithm"], row["learner"], row["rules"]): row for row in summary["rows"]}
    assert rows.keys() == {
        ("corrupted", "none", "released"),
        ("corrupted", "none", "pseudocode"),
        ("agent", "corrections", "trust"),
    }
    assert rows["agent", "corrections", "trust"]["steps"] < rows["corrupted", "none", "released"]["steps"]
    assert names.planner_title("agent", "corrections") == "Agent"
    assert "engine agent" in unit().identity["versions"]


def test_where_there_is_no_agent_it_is_refused():
    with pytest.raises(ValueError, match="algorithm is agent, which learns while it acts; give --scenario online"):
        offline_grid(["two_way"], ["agent"], [], [0.1], [], 2)
    given = {"domains": ["two_way"], "scenario": "online", "algorithms": ["agent"], "runs": 1, "steps": 5,
             "exploration": [], "taus": [], "iterations": [], "interval": None, "options": []}  # fmt: skip
    with pytest.raises(ValueError, match="learner is linear, which --algorithm agent does not read"):
        RunOptions(**given, learners=["linear"], minibatches=None)
    with pytest.raises(ValueError, match="minibatches is 5, which --algorithm agent does not read"):
        RunOptions(**given, learners=[], minibatches=5)
    with pytest.raises(ValueError, match="learner is 'linear', which --algorithm agent does not read"):
        unit(learner="linear").complete()
