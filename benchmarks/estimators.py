"""Estimators of U side by side: `python benchmarks/estimators.py --domains freeway --learners network,two_part`.

1. The same real transitions, made by MCTS on the wrong model, go to every estimator; after some of them it learns
   once and is asked about all actions of other states, which the same agent visited in another stretch.
2. `--play`: every estimator learns on its own way through the real world, a round every 500 steps (`--interval`) with
   tau 10, 1, 0.1, and then plays on with what it has learned, at tau 0.1.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from uamcts.runtime.jax_setup import prepare_jax

prepare_jax()

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import uamcts
from uamcts.episodes.online import Run, deletions, step
from uamcts.lab.run.online import average_precision
from uamcts.presets import online_settings, search_config
from uamcts.uncertainty import make_estimator
from uamcts.uncertainty.learner import AgentState, UncertaintyLearner, empty_cache, finish_on_host, plan, purpose, train
from uamcts.uncertainty.schedule import Schedule

LEARNERS = "network,network+gate,two_part,bayes,trees,nearest,ensemble,dropout"
GRADUAL = ("network", "linear", "two_part", "ensemble", "dropout")
"""Those that learn by minibatches: MINIBATCHES a round, and as many rounds at once as the paper's 5,000 make."""
MINIBATCHES, TOGETHER = 1000, 5
PIECE = 250
"""Real steps of one call. Rounds come between two calls."""
OTHER = 1000
"""Steps of the other stretch."""
KEY = jax.random.key(0)


def stream(domain, steps, key):
    """What MCTS on the wrong model meets: states [steps], actions, U of what it did, U of all actions."""
    config = search_config(domain, "corrupted")
    knowledge = AgentState.fresh(UncertaintyLearner(make_estimator("none", key, domain)), Schedule())
    every = jnp.arange(domain.num_actions)
    truth = uamcts.true_uncertainty(domain)

    def one(carry, index):
        state, length = carry
        action = plan(knowledge, jax.random.fold_in(key, index), state, domain, config).action
        after = domain.world(state, action)
        over = after.terminal | (length + 1 >= (domain.time_limit or 10**6))
        start = domain.reset(jax.random.fold_in(key, index + 10**7))
        onward = jax.tree.map(lambda a, b: jnp.where(over, a, b), start, after.state)
        errors = jax.vmap(truth, (None, 0))(state, every)
        return (onward, jnp.where(over, 0, length + 1)), (state, action, errors[action], errors)

    start = (domain.reset(key), jnp.int32(0))
    return jax.jit(lambda start: jax.lax.scan(one, start, jnp.arange(steps))[1])(start)


def fresh(name, domain, steps):
    copies = online_settings(domain).terminal_copies
    return make_estimator(name, KEY, domain, capacity=steps * copies, minibatches=MINIBATCHES, most_copies=copies)


def passive(name, domain, met, other, sizes):
    """A row for each of `sizes`: how well the estimator knows the other states after so many real steps."""
    states, actions, targets, _ = met
    visited, _, _, truth = other

    def absorbed(estimator, rows):
        one = lambda estimator, row: (estimator.absorb(*row), None)  # noqa: E731
        return jax.lax.scan(one, estimator, rows)[0]

    absorb, learn = jax.jit(absorbed), jax.jit(lambda estimator, key: estimator.learn(key)[0])
    every = jnp.arange(domain.num_actions)
    ask = jax.jit(
        lambda estimator: jax.lax.map(
            lambda state: jax.vmap(estimator.predict, (None, 0))(state, every), visited, batch_size=50
        )
    )
    estimator, done = fresh(name, domain, max(sizes)), 0
    for size in sizes:
        rows = jax.tree.map(lambda leaf, done=done, size=size: leaf[done:size], (states, actions, targets))
        estimator, done, now = absorb(estimator, rows), size, time.process_time()
        learned = estimator
        for key in jax.random.split(KEY, TOGETHER if name.split("+")[0] in GRADUAL else 1):
            learned = learn(learned, key).finish_on_host()
        said = np.ravel(jax.block_until_ready(ask(learned)))
        true = np.ravel(truth)
        wrong = true > 0
        print(
            f"{domain.name:15} {name:13} {size:6} {average_precision(wrong, said):10.3f}"
            f" {np.mean(said[wrong] > 0):6.3f} {np.mean(said[~wrong] > 0):7.4f}"
            f" {np.mean(np.abs(said - true)[wrong]) / np.mean(true[wrong]):7.3f} {time.process_time() - now:8.1f}",
            flush=True,
        )


def active(name, domain, steps, episodes, cheapest, interval=500):
    """Learns for `steps` real steps, then plays on with what it knows; one row. CPU seconds a step of the latter."""
    settings = online_settings(domain)
    config, copies = search_config(domain, "combined"), settings.terminal_copies
    schedule = replace(settings.schedule, interval=min(interval, settings.schedule.interval))
    estimator = fresh(name, domain, 10 * steps)
    run = Run.fresh(KEY, domain, UncertaintyLearner(estimator), schedule)

    def one(carry, index):
        run, memory = carry
        following, memory, said = step(run, memory, domain, config, copies)

        def look(run):
            found = plan(run.knowledge, purpose(run.key, 9, index), run.state, domain, config, memory)
            return deletions(found, domain)

        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(look, run))
        return (following, memory), (said, jax.lax.cond(index % 50 == 0, look, lambda _: nothing, run))

    play = jax.jit(lambda run, memory: jax.lax.scan(one, (run, memory), jnp.arange(PIECE)))
    teach = jax.jit(lambda run: train(run.knowledge, purpose(run.key, 2, run.knowledge.steps), schedule))
    memory = empty_cache(run.knowledge.learner, domain)
    rewards = {"learning": [], "frozen": []}
    for _ in range(steps // PIECE):
        (run, memory), (said, _) = play(run, memory)
        if int(run.knowledge.steps) >= 2 * schedule.interval:
            rewards["learning"] += np.asarray(said.reward)[np.asarray(said.ended)].tolist()
        if schedule.due(int(run.knowledge.steps)):
            run = eqx.tree_at(lambda run: run.knowledge, run, finish_on_host(teach(run)))
            memory = empty_cache(run.knowledge.learner, domain)
    run = eqx.tree_at(lambda run: run.knowledge.tau, run, jnp.float32(0.1))
    truths, guesses, nodes, made, start = [], [], np.zeros(2), 0, time.process_time()
    while len(rewards["frozen"]) < episodes and made < 100 * episodes:
        (run, memory), (said, looked) = jax.block_until_ready(play(run, memory))
        made += PIECE
        rewards["frozen"] += np.asarray(said.reward)[np.asarray(said.ended)].tolist()
        truths.append(np.ravel(said.true))
        guesses.append(np.ravel(said.predicted))
        nodes += [int(looked.fired.sum()), int(looked.faultless.sum())]
    cost = (time.process_time() - start) / made
    frozen, learning = np.array(rewards["frozen"]), np.array(rewards["learning"] or [np.nan])
    precision = average_precision(np.concatenate(truths) > 0, np.concatenate(guesses))
    print(
        f"{domain.name:15} {name:13} {steps:6} {learning.mean():8.2f} {frozen.mean():8.2f}"
        f" {frozen.std(ddof=1) / np.sqrt(len(frozen)):6.2f} {len(frozen):8} {precision:10.3f}"
        f" {nodes[0] / max(nodes[1], 1):10.3f} {1e3 * cost:7.2f} {cost / (cheapest or cost):6.2f}",
        flush=True,
    )
    return cost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", default="space_invaders,freeway,breakout,two_way,two_way_icy")
    parser.add_argument("--learners", default=LEARNERS)
    parser.add_argument("--sizes", default="300,1000,5000", help="real steps after which to ask")
    parser.add_argument("--play", action="store_true", help="2. instead of 1.; `none` and `true` come first")
    parser.add_argument("--no-baselines", action="store_true", help="with --play: leave `none` and `true` out")
    parser.add_argument("--interval", type=int, default=500, help="with --play, of rounds; a multiple of 250")
    parser.add_argument("--episodes", type=int, default=64, help="with --play, at least")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.play:
        print(f"{'domain':15} {'learner':13} {'steps':>6} {'learning':>8} {'frozen':>8} {'error':>6} {'episodes':>8}"
              f" {'precision':>10} {'false del.':>10} {'ms/step':>7} {'x none':>6}")  # fmt: skip
    else:
        print(f"{'domain':15} {'learner':13} {'steps':>6} {'precision':>10} {'found':>6} {'false':>7} {'error':>7}"
              f" {'CPU s':>8}")  # fmt: skip
    for name in options.domains.split(","):
        domain = uamcts.make(name)
        if options.play:
            cheapest = None if options.no_baselines else active("none", domain, PIECE, options.episodes, None)
            if cheapest:
                active("true", domain, PIECE, options.episodes, cheapest)
            for learner in options.learners.split(","):
                active(learner, domain, sizes[-1], options.episodes, cheapest, options.interval)
        else:
            met, other = stream(domain, max(sizes), KEY), stream(domain, OTHER, jax.random.key(1))
            for learner in options.learners.split(","):
                passive(learner, domain, met, other, sizes)


if __name__ == "__main__":
    main()
