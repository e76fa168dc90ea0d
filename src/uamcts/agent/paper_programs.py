"""The compiled functions of agents of a domain, which agents with the same settings share."""

from __future__ import annotations

import functools
from dataclasses import fields, replace

import jax

from uamcts.agent.domain_transitions import compare, infer_terminal
from uamcts.domains.base import Domain
from uamcts.mcts.config import SearchConfig
from uamcts.uncertainty import learner
from uamcts.uncertainty.schedule import Schedule


class PaperPrograms:
    """Compiles nothing yet: every function does so when it is first called."""

    def __init__(self, domain: Domain, config: SearchConfig, schedule: Schedule):
        self.plan = jax.jit(
            lambda knowledge, key, state, cache, iterations: learner.plan(
                knowledge, key, state, domain, replace(config, iterations=iterations), cache
            ),
            donate_argnames="cache",
            static_argnames="iterations",
        )
        self.seen = jax.jit(lambda knowledge, *seen: learner.observe(knowledge, domain, *seen))
        self.train = jax.jit(lambda knowledge, key: learner.train(knowledge, key, schedule))
        self.compare = jax.jit(functools.partial(compare, domain))
        self.over = jax.jit(functools.partial(infer_terminal, domain))


def paper_programs(domain: Domain, config: SearchConfig, schedule: Schedule) -> PaperPrograms:
    """The programs of a domain with these settings; those of the latest sixteen are kept."""
    kinds = tuple(type(getattr(config, field.name)) for field in fields(config))
    try:
        return _kept(domain, config, schedule, kinds)
    except TypeError:  # settings that are arrays cannot be hashed
        return PaperPrograms(domain, config, schedule)


@functools.lru_cache(maxsize=16)
def _kept(domain: Domain, config: SearchConfig, schedule: Schedule, kinds: tuple[type, ...]) -> PaperPrograms:
    """The types are compared too: 1, 1.0 and True are equal, and programs differ."""
    return PaperPrograms(domain, config, schedule)
