"""The reward is far away, and the simulator is wrong about the way there: how uncertainty and facts help.

python examples/detour.py

The floor has 5 x 5 cells, and only the goal in the far corner pays. In the simulator the floor is empty. In the real
world a shelf leaves one gap, and an agent that has walked along the shelf must come back.
"""

import argparse
import sys

from drawing import Plan, frame

import uamcts

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--episodes", type=int, default=4)
parser.add_argument("--longest", type=int, default=60, help="steps after which an episode is cut off")
parser.add_argument("--quick", action="store_true", help="a small version: one agent, two episodes")
arguments = parser.parse_args()
if arguments.quick:
    arguments.runs, arguments.episodes = 1, 2

SHELF = {(2, 1), (2, 2), (2, 3), (2, 4)}


class Floor:
    num_actions = 4
    action_names = ("up", "right", "down", "left")

    def __init__(self, blocked=()):
        self.blocked = blocked

    def step(self, state, action):
        down, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        after = (state[0] + down, state[1] + right)
        if not (0 <= after[0] <= 4 and 0 <= after[1] <= 4) or after in self.blocked:
            after = state
        return after, float(after == (4, 4)), after == (4, 4)


def episode(agent, world):
    """One episode in the real world; the agent learns as it goes."""
    state, over, steps = (0, 0), False, 0
    while not over and steps < arguments.longest:
        action = agent.act(state)
        after, reward, over = world.step(state, action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        state, steps = after, steps + 1
    return steps


budget = {"iterations": 100, "rollouts": 4, "depth": 20, "gamma": 0.9}
papers = uamcts.SearchConfig(**budget, rules="released")
trust = uamcts.SearchConfig(**budget, rules="trust", graph=False)
print(f"{arguments.runs} agents of {arguments.episodes} episodes, cut at {arguments.longest} steps (the shortest: 8)")
for name, model, options in (
    ("true simulator, MCTS", Floor(SHELF), {"estimator": "none", "config": papers, "corrections": ()}),
    ("wrong simulator, MCTS", Floor(), {"estimator": "none", "config": papers, "corrections": ()}),
    ("UA-MCTS, paper's rules", Floor(), {"config": papers, "corrections": ()}),
    ("trust search", Floor(), {"config": trust, "corrections": ()}),
    ("trust search and memory", Floor(), {"config": trust}),
):
    lengths = []
    for run in range(arguments.runs):
        agent = uamcts.Agent(model, seed=run, **options)
        lengths += [episode(agent, Floor(SHELF)) for _ in range(arguments.episodes)]
    arrived = sorted(steps for steps in lengths if steps < arguments.longest)
    print(f"  {name:24}  {len(arrived)} of {len(lengths)} arrived, after", *arrived, "steps", flush=True)
if sys.stdout.isatty():
    plan = Plan(["S....", ".....", ".####", ".....", "....G"])
    learned = plan.map(agent.report(1000), lambda error: error.learned)
    print("\n".join(frame(plan, learned, "U that the last agent has learned: 1 to 9, the largest")))
