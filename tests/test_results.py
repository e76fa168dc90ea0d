"""What the search achieves in the games: the paper's numbers and its ordering, on fixed seeds.

The seeds are fixed, so these tests do not fail by chance; the tolerances are what chance would allow.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.episodes.offline import play
from uamcts.presets import ALGORITHMS, EXPLORATION, planning_domain, search_config


def lanes(domain, choices):
    """Domains and settings of (algorithm, settings, runs) as lanes of one batch."""
    domains, configs = [], []
    for algorithm, options, runs in choices:
        domains += [planning_domain(domain, algorithm)] * runs
        configs += [search_config(domain, algorithm, **options)] * runs
    return tuple(jax.tree.map(lambda *leaves: np.stack(leaves), *trees) for trees in (domains, configs))


def rewards(name, algorithms, runs, limit=None, seed=0, **options):
    """Rewards of `runs` episodes of each algorithm at the paper's c, [algorithms, runs]."""
    batch = lanes(uamcts.make(name), [(algorithm, options, runs) for algorithm in algorithms])
    keys = jnp.tile(jax.random.split(jax.random.key(seed), runs), len(algorithms))
    scores = jax.jit(jax.vmap(lambda key, domain, config: play(key, domain, config, limit)))(keys, *batch)
    assert not np.any(scores.flags)
    return dict(zip(algorithms, np.asarray(scores.reward).reshape(len(algorithms), runs), strict=True))


@pytest.mark.long
def test_space_invaders_offline():
    """128 runs each, cut at 300 steps, against an independent measurement of as many: mean and standard error.

    Three standard errors of the difference: a false alarm in 1 of 370 per comparison, were the seeds not fixed.
    """
    measured = {"true": (18.1, 0.6), "corrupted": (16.0, 0.3), "combined": (23.8, 0.1)}
    found = rewards("space_invaders", list(measured), runs=128)
    for algorithm, (mean, error) in measured.items():
        ours = found[algorithm]
        tolerance = 3 * np.hypot(error, ours.std(ddof=1) / np.sqrt(len(ours)))
        assert abs(ours.mean() - mean) <= tolerance, algorithm
    assert found["combined"].mean() > found["true"].mean() > found["corrupted"].mean()


@pytest.mark.long
def test_freeway_shows_the_papers_ordering():
    """100 runs: a mean near one half has a standard error of 0.05; expansion and combined lie far above."""
    found = {a: r.mean() for a, r in rewards("freeway", ["true", "corrupted", "expansion", "combined"], 100).items()}
    assert found["true"] >= 0.98
    assert found["combined"] - found["corrupted"] > 0.2
    assert found["expansion"] - found["corrupted"] > 0.2
    assert found["combined"] >= 0.8


@pytest.mark.long
def test_breakout_shows_the_papers_ordering():
    """24 runs, cut at 120 steps: means of about 1 (corrupted) and 10 (combined) with standard errors below 1."""
    found = rewards("breakout", ["true", "corrupted", "expansion", "combined"], 24, limit=120)
    means = {algorithm: reward.mean() for algorithm, reward in found.items()}
    assert means["corrupted"] < 3
    assert means["combined"] > means["corrupted"] + 4
    assert means["expansion"] > means["corrupted"] + 4


@pytest.mark.long
def test_breakout_at_full_length():
    """100 runs of all seven algorithms: combined is almost true, selection and expansion are good alone."""
    means = {a: r.mean() for a, r in rewards("breakout", list(ALGORITHMS), 100).items()}
    assert means["combined"] > 0.7 * means["true"]
    assert min(means["selection"], means["expansion"]) > 5 * means["corrupted"]
    assert max(means["backpropagation"], means["simulation"]) < 0.3 * means["combined"]


@pytest.mark.long
def test_freeway_all_phases():
    means = {a: r.mean() for a, r in rewards("freeway", list(ALGORITHMS), 400).items()}
    assert means["expansion"] == max(means[a] for a in ("selection", "expansion", "simulation", "backpropagation"))
    assert means["combined"] > means["corrupted"] + 0.2


def test_a_sweep_compiles_once():
    """Seven algorithms x four c x two seeds, then other c, tau, gamma and broken cells: one compiled program."""
    domain = uamcts.make("two_way")
    choices = [(algorithm, {"c": c}, 2) for algorithm in ALGORITHMS for c in EXPLORATION]
    compilations = []

    def listen(event, *_, **__):
        if event.endswith("backend_compile_duration"):
            compilations.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        program = jax.jit(jax.vmap(lambda key, domain, config: play(key, domain, config, 20)))
        keys = jax.random.split(jax.random.key(0), 2 * len(choices))
        first = jax.block_until_ready(program(keys, *lanes(domain, choices)))
        before = len(compilations)
        assert before >= 1
        other = [(algorithm, {"c": c + 1, "tau": 5.0, "gamma": 0.9}, 2) for algorithm, options, _ in choices
                 for c in options.values()]  # fmt: skip
        second = jax.block_until_ready(program(keys, *lanes(uamcts.make("two_way", broken=((2, 4),)), other)))
        assert program._cache_size() == 1
        assert len(compilations) == before
        assert np.any(np.asarray(first.steps) != np.asarray(second.steps)), "the values made no difference"
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
