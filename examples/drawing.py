"""Draws the world of an example in the terminal, with U in every cell: where the simulator was wrong, how much."""

import itertools

import numpy as np

from uamcts.domains.heat import as_digits


class Plan:
    """A world of cells.

    Args:
        rows: The real world as text, one character a cell; a dot is an empty cell.
        cell: A function of a state's features that returns (row, column); by default the first two features.
    """

    def __init__(self, rows, cell=lambda features: features[:2]):
        self.rows, self.cell = rows, cell

    def map(self, errors, value):
        """The largest U of the errors in each cell, [rows, columns]; `value` says which U of an error."""
        found = np.zeros((len(self.rows), len(self.rows[0])))
        for error in errors:
            row, column = (round(float(place)) for place in self.cell(error.features))
            if 0 <= row < found.shape[0] and 0 <= column < found.shape[1]:
                found[row, column] = max(found[row, column], value(error))
        return found


def plane(across, up, size=(31, 9)):
    """A plan of two numbers of a state, cut into cells: (feature, least, greatest) of each."""
    columns, rows = size

    def cell(features):
        shares = [(features[place] - low) / (high - low) for place, low, high in (up, across)]
        row, column = np.clip(shares, 0.0, 1.0)
        return (rows - 1) * (1 - row), (columns - 1) * column

    return Plan(["." * columns] * rows, cell)


def frame(plan, found, title):
    """The plan with U as digits, 9 the largest, in a frame under a title."""
    digits = as_digits(found)
    shown = np.where(digits == "", np.array([list(row) for row in plan.rows]), digits)
    edge = "─" * shown.shape[1]
    return [title, f"┌{edge}┐", *(f"│{''.join(row).replace('.', '·')}│" for row in shown), f"└{edge}┘"]


def draw_domain(domain, state, uncertainty, title):
    """Prints the board of a domain with U, [rows, columns, ...], as digits in its empty cells."""
    print(f"{title}: 1 to 9, the largest")
    print(domain.text(state, as_digits(uncertainty)))


def draw_arms(bandit, width=40):
    """Prints the arms of a bandit: o is what an arm seems to pay, x what it really pays, = how far they are apart."""
    print("arm  pays, from 0 to 1: o seemingly, x really; U = |o - x|")
    for number, (seems, pays) in enumerate(zip(bandit.observed, bandit.real, strict=True)):
        o, x = (round(float(mean) * width) for mean in (seems, pays))
        line = ["=" if min(o, x) < place < max(o, x) else "·" for place in range(width + 1)]
        line[o] = "o"
        line[x] = "x"
        print(f"{number:3}  {''.join(line)}  U {abs(seems - pays):.2f}")


def maps(plan, wrong, agent):
    """Two maps by title: the U that a planner saw that believes the simulator, and what the agent still doubts."""
    return {
        "MCTS, wrong model: U seen": plan.map(wrong.report(10_000), lambda error: error.error),
        "agent: U learned": plan.map(agent.report(10_000), lambda error: error.learned),
    }


def draw_maps(plan, found):
    """Prints the maps side by side."""
    print("where the simulator was wrong, by U: 1 to 9, the largest")
    blocks = [frame(plan, one, title) for title, one in found.items()]
    widths = [max(map(len, block)) for block in blocks]
    for lines in itertools.zip_longest(*blocks, fillvalue=""):
        print("   ".join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip())
    for title, one in found.items():
        if not one.any():
            print(f"{title.partition(':')[0]}: nothing is predicted wrongly any more")
