"""What planners of the field get with more iterations, or with equal time for a decision; prints Markdown.

    python benchmarks/field_budgets.py --budgets 100 1000 10000 --planners ada_mcts --cells lake_40 cliff_40
    python benchmarks/field_budgets.py --budgets "10 ms" "100 ms"
    python benchmarks/field_budgets.py --rows docs/results/field/budgets.jsonl --figure docs/results/field/figures

Milliseconds are CPU time of one decision on one core, after compiling; `uamcts.Agent`'s include learning. Planners have
their usual settings, which were not chosen for the cell. Rows are kept in `--rows`, a file of JSON lines; what it has
is not measured again, and without `--budgets` it is only shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from uamcts.bench.timing import use_one_core

NAMES = ("agent", "ada_mcts", "bamcp", "wasserstein", "mcts", "mcts_told", "graph_told", "pa_mcts")
CELLS = ("lake_40", "lake_90", "cliff_40", "cliff_90")
SEED = 2_000_000


def find_cell(name):
    from uamcts.lab.experiments.field import FIELD

    return next(cell for family in FIELD.values() for cell in family.experiments if cell.name == name)


def make_parts(name, cell, iterations):
    """The grid, the planner and what it believes."""
    from uamcts import field
    from uamcts.lab.experiments.field_worlds import PLANNERS
    from uamcts.lab.run.field import make_planner

    world = cell.world
    grid = field.make_grid(world.map, world.slips, world.rewards, world.teleport)
    believed = world.parameter if PLANNERS[name].told else world.believed
    return grid, None if name == "agent" else make_planner(name, world.usual(name), iterations, world), believed


def play(name, cell, iterations, episodes):
    """How episodes go."""
    import jax

    from uamcts import field

    world = cell.world
    grid, planner, believed = make_parts(name, cell, iterations)
    shape = (episodes, world.steps)
    if name == "agent":
        return field.play_agent(grid, world.parameter, believed, world.gamma, *shape, iterations, SEED)
    draws = 32 if iterations <= 1000 else 8 if iterations <= 10_000 else 2  # a tree of each takes memory
    return field.play(
        jax.random.key(SEED), planner, grid, world.parameter, believed, world.gamma, *shape, draws
    )  # fmt: skip


def time_decision(name, cell, iterations):
    """CPU seconds of a decision: of the agent over two episodes, of the others at the start of one."""
    import jax
    import jax.numpy as jnp

    from uamcts import field

    if name == "agent":
        play(name, cell, iterations, 1)  # compiles
        start = time.process_time()
        steps = play(name, cell, iterations, 2).steps.sum()
        return (time.process_time() - start) / int(steps)
    grid, planner, believed = make_parts(name, cell, iterations)
    believed = jnp.asarray(believed)
    memory, place = planner.begin(grid, believed), field.Place(grid.start, jnp.asarray(cell.world.steps))
    act, seconds = jax.jit(planner.act), []
    for number in range(8):
        start = time.process_time()
        act(jax.random.key(number), grid, believed, memory, place).block_until_ready()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[1:])


def fit_iterations(name, cell, seconds):
    """How many iterations fit in this time, to two digits: each look is at the number that the last one suggests."""
    iterations = 100
    for _ in range(3):
        fitting = iterations * seconds / time_decision(name, cell, iterations)
        iterations = max(1, int(float(f"{min(fitting, 30 * iterations):.2g}")))
    return iterations


def count_episodes(name, iterations, most):
    """Fewer of planners that search at every move, and fewer with many iterations; of these at most so many."""
    from uamcts.lab.experiments.field_worlds import PLANNERS

    if not PLANNERS[name].learns:
        return 1000
    return min(most, max(30, min(200, (20_000 if name == "agent" else 400_000) // iterations)))


def measure(name, cell_name, budget, episodes):
    """One row: what a planner gets in a cell with a budget, like `10 ms` or `1000`."""
    import numpy as np

    cell = find_cell(cell_name)
    number, _, unit = budget.partition(" ")
    iterations = fit_iterations(name, cell, float(number) / 1000) if unit else int(number)
    rewards = np.asarray(play(name, cell, iterations, count_episodes(name, iterations, episodes)).reward)
    error = float(rewards.std(ddof=1)) / len(rewards) ** 0.5
    return {"cell": cell_name, "planner": name, "budget": budget, "iterations": iterations, "episodes": len(rewards),
            "mean": round(float(rewards.mean()), 4), "error": round(error, 4)}  # fmt: skip


def score(row):
    """(reward + 1) / (optimum + 1)."""
    from uamcts.lab.report.field_section import yardsticks

    return (row["mean"] + 1) / (yardsticks(find_cell(row["cell"])).optimum + 1)


def in_order(budget):
    number, _, unit = budget.partition(" ")
    return bool(unit), float(number)


def show(rows):
    """A table for iterations and one for times: reward, standard error and iterations, and the mean score."""
    from uamcts.lab.experiments.field_worlds import PLANNERS

    for timed in (False, True):
        own = [row for row in rows if (" " in row["budget"]) == timed]
        cells = sorted({row["cell"] for row in own}, key=lambda name: (name.split("_")[0], int(name.split("_")[1])))
        if not own:
            continue
        print(
            f"\n| planner, {'CPU time' if timed else 'iterations'} of a decision | " + " | ".join(cells) + " | score |"
        )
        print("| --- |" + " --- |" * (len(cells) + 1))
        found = {(row["planner"], row["budget"], row["cell"]): row for row in own}
        for name in PLANNERS:
            for budget in sorted({row["budget"] for row in own if row["planner"] == name}, key=in_order):
                line = [found.get((name, budget, cell)) for cell in cells]
                words = [_words(row, timed) for row in line]
                mean = f"{statistics.fmean(map(score, line)):.2f}" if all(line) else "–"
                print(f"| {PLANNERS[name].title}, {budget} | " + " | ".join(words) + f" | {mean} |")


def _words(row, timed):
    if row is None:
        return "–"
    return f"{row['mean']:.2f} ± {row['error']:.2f}" + (f" ({row['iterations']:,})" if timed else "")


def draw(rows, folder):
    """Rewards against iterations of ADA-MCTS in four cells, beside what was published, and scores in equal time."""
    from uamcts.lab.experiments.field import FIELD
    from uamcts.lab.report import style

    iterated = [row for row in rows if row["planner"] == "ada_mcts"]  # times too: rows say how many iterations fitted
    words = "discounted reward and standard error"
    figure, axes = style.new_axes("ADA-MCTS against its iterations", "iterations", words, (6.2, 4.2))
    for name, colour in zip(CELLS, ("#0072b2", "#56b4e9", "#a33d00", "#e69f00"), strict=True):
        own = sorted((row for row in iterated if row["cell"] == name), key=lambda row: row["iterations"])
        found = {key: [row[key] for row in own] for key in ("iterations", "mean", "error")}
        cell, family = find_cell(name), name.split("_")[0]
        label = f"{family}, p {cell.level:g}"
        axes.errorbar(
            found["iterations"], found["mean"], found["error"], color=colour, marker="o", capsize=3, label=label
        )
        published = FIELD[family].published["ADA-MCTS"][cell.level]
        axes.plot([30_000], [published], color=colour, marker="x", linestyle="none", label=f"{label}, published")
    axes.set_xscale("log")
    style.legend_below(axes, 2)
    style.save(figure, folder, "field_iterations")
    draw_times([row for row in rows if " " in row["budget"]], folder)


def draw_times(rows, folder):
    """Scores in equal time, of planners that were measured in all cells."""
    from uamcts.lab.experiments.field_worlds import PLANNERS
    from uamcts.lab.report import style

    figure, axes = style.new_axes("Equal time for a decision", "score: 1 is the optimum", "", (6.2, 3.6))
    budgets = sorted({row["budget"] for row in rows}, key=in_order)
    found = {}
    for row in rows:
        found.setdefault((row["planner"], row["budget"]), []).append(score(row))
    cells = len({row["cell"] for row in rows})
    names = [name for name in reversed(PLANNERS) if len(found.get((name, budgets[0]), [])) == cells]
    wide = 0.8 / len(budgets)
    for place, budget in enumerate(budgets):
        every = [found.get((name, budget), []) for name in names]
        means = [statistics.fmean(scores) if len(scores) == cells else float("nan") for scores in every]
        places = [y - 0.4 + wide * (place + 0.5) for y in range(len(names))]
        axes.barh(places, means, 0.9 * wide, label=f"{budget} of CPU time", color=("#56a0d3", "#08519c")[place % 2])
    axes.set_yticks(range(len(names)), [PLANNERS[name].title for name in names])
    style.legend_below(axes, 2)
    style.save(figure, folder, "field_times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", nargs="*", default=[], help='iterations, or times like "10 ms"')
    parser.add_argument("--planners", nargs="+", default=NAMES)
    parser.add_argument("--cells", nargs="+", default=CELLS)
    parser.add_argument("--episodes", type=int, default=200, help="of planners that learn, at most")
    parser.add_argument("--rows", type=Path, help="where rows are kept")
    parser.add_argument("--figure", type=Path, help="the folder of the figures")
    chosen = parser.parse_args()
    use_one_core()
    rows = (
        [json.loads(line) for line in chosen.rows.read_text().splitlines()]
        if chosen.rows and chosen.rows.exists()
        else []
    )
    for budget in chosen.budgets:
        for cell in chosen.cells:
            for name in chosen.planners:
                if not any((row["planner"], row["cell"], row["budget"]) == (name, cell, budget) for row in rows):
                    rows.append(measure(name, cell, budget, chosen.episodes))
                    if chosen.rows:
                        with chosen.rows.open("a") as file:
                            file.write(json.dumps(rows[-1]) + "\n")
    show(rows)
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
