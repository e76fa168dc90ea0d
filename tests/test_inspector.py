"""The inspector's data: what it reads from a search, what an agent records, and the trace file."""

import copy
import gzip
import json
from dataclasses import replace

import engines
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import uamcts
from uamcts import reference
from uamcts.agent.cells import PlayerCells
from uamcts.cli import app
from uamcts.inspector import Inspection, read_trace, write_trace
from uamcts.inspector.pictures import MOST_BYTES, Artist, png
from uamcts.inspector.plans import DELETED, DOUBTFUL, ENDS, SHARED, plan_record
from uamcts.inspector.trace import find_problem, pack

runner = CliRunner()


class Pay:
    """Action 1 pays 1, action 0 nothing; it goes on for ever."""

    num_actions = 2

    def step(self, state, action):
        return state + 1, float(action), False


def pay(state, action):
    return uamcts.Transition(state + 1, jnp.asarray(action, jnp.float32), jnp.bool_(False))


class Corridor:
    """Ten places in a row; the last one pays."""

    num_actions = 2
    action_names = ("left", "right")

    def step(self, state, action):
        state = max(0, min(9, state + (1 if action else -1)))
        return state, float(state == 9), state == 9


def walk(agent, blocked=4, steps=14, world=None):
    """Lets an agent act where a wall, once met, stays for two steps; returns what it did."""
    world, state, met, done = world or Corridor(), 0, 0, []
    for _ in range(steps):
        action = agent.act(state)
        after, reward, over = world.step(state, action)
        if state == blocked and action == 1 and met < 2:
            after, reward, over, met = state, 0.0, False, met + 1
        agent.observe(state, action, after, reward=reward, terminal=over)
        done.append((state, action))
        state = 0 if over else after
    return done


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording of an agent, and its file."""
    path = tmp_path_factory.mktemp("trace") / "trace.uamcts"
    agent = uamcts.Agent(Corridor(), iterations=30)
    with agent.record(path):
        done = walk(agent)
    return agent, path, done


# What is read from a search


def columns(plan):
    """The nodes of a plan as rows (path of actions, visits, value, flags)."""
    nodes, paths, rows = plan["nodes"], [()], []
    for number, parent in enumerate(nodes["parent"]):
        if number:
            paths.append((*paths[parent], nodes["action"][number]))
        rows.append((paths[number], nodes["visits"][number], nodes["value"][number], nodes["flags"][number]))
    return rows


def path_of(plan, node):
    """The actions that lead to a node."""
    return columns(plan)[node][0]


def test_three_iterations_by_hand_in_both_engines():
    """The root has two children from the start. Both are tried once; the better one, 1, is tried again and expanded.

    Rollouts of one step of which half pay are worth 0 or 1; so 1 is worth 1 + its rollouts and 0 only its own.
    """
    config = uamcts.SearchConfig(iterations=3, rollouts=1, depth=1, c=0.0, gamma=0.25)
    plain = reference.search(0, 0, Pay(), None, config)
    compiled = uamcts.search(jax.random.key(0), jnp.int32(0), pay, None, config, num_actions=2)
    for plan in (plan_record(plain), plan_record(compiled, (), config)):
        found = {path: visits for path, visits, _, _ in columns(plan)}
        assert found == {(): 3, (1,): 2, (0,): 1, (1, 0): 1}
        assert plan["expansions"] == [-1, -1, plan["nodes"]["action"].index(1)]
        assert [path_of(plan, node) for node in plan["ends"]] == [(0,), (1,), (1, 0)]
        assert plan["visits"] == [1, 2]
        assert plan["nodes"]["more"] == [0, 0, 0, 0]
        assert plan["action"] == 1


def searches(rules, graph, **more):
    """The same search by both engines, and its settings: (0, 0) of a gridworld, near its unknown wall."""
    domain, key = uamcts.make("two_way_icy"), jax.random.key(5)
    own = {"worst": 0.0} if rules == "trust" else {"tau": 1e-6}
    budget = {"iterations": 24, "rollouts": 4, "depth": 8, "gamma": 0.5, **more}
    config = uamcts.SearchConfig(**budget, rules=rules, graph=graph, **own)
    state = domain.world(domain.reset(key), 3).state
    model, draws = engines.PlainDomain(domain), engines.HashedDraws(key)
    draws.rollouts = config.rollouts
    plain = reference.search(draws, engines.plain_state(state), model, model.uncertainty, config)
    compiled = uamcts.search(key, state, domain.model, uamcts.true_uncertainty(domain), config)
    return plan_record(plain), plan_record(compiled, (), config)


@pytest.mark.parametrize("rules", ["released", "trust"])
def test_both_engines_give_the_same_tree(rules):
    plain, compiled = searches(rules, graph=False)
    assert sorted(columns(plain)) == sorted(columns(compiled))
    assert len(columns(plain)) > 20
    parts = ("visits", "values", "doubt", "keep", "exists", "notes", "words", "kind")
    assert [plain[part] for part in parts] == [compiled[part] for part in parts]
    assert [node >= 0 for node in plain["expansions"]] == [node >= 0 for node in compiled["expansions"]]
    walked = [path_of(plain, node) for node in plain["ends"]]
    assert walked == [path_of(compiled, node) for node in compiled["ends"]]
    found = {path: visits for path, visits, *_ in columns(plain)}
    assert len(walked) == 24
    for path in set(walked):  # every visit belongs to an iteration
        assert found[path] == sum(other[: len(path)] == path for other in walked)
    flags = [one for *_, one in columns(plain)]
    assert any(one & DOUBTFUL for one in flags)
    assert any(one & DELETED for one in flags) == (rules == "released")


def test_values_below_doubtful_steps_know_the_worst_return():
    """V_min is not given. Action 1 pays and is doubted; the search finds -6 or less and the tree is shown with it."""

    def cost(state, action):
        return uamcts.Transition(state + 1, jnp.where(action == 0, -2.0, -1.0), jnp.bool_(False))

    config = uamcts.SearchConfig(
        iterations=20, rollouts=2, depth=3, gamma=0.5, rules="trust", graph=False, tree_depth=4
    )
    doubt = lambda state, action: 1.0 * (action == 1)  # noqa: E731
    result = uamcts.search(jax.random.key(0), jnp.int32(0), cost, doubt, config, num_actions=2)
    assert float(result.worst) < -2.0
    plan = plan_record(result, (), config)
    known = plan_record(result, (), replace(config, worst=float(result.worst)))
    unknown = plan_record(result._replace(worst=None), (), config)
    assert plan["nodes"]["value"] == known["nodes"]["value"]
    assert plan["nodes"]["value"] != unknown["nodes"]["value"]


def test_graphs_of_both_engines_are_unfolded():
    """Both expand all states that can be reached, and so find the same values; they are 10 / 2^(steps - 1)."""
    for plan in searches("trust", graph=True, iterations=60):
        assert plan["kind"] == "graph"
        best = {path: value for path, _, value, _ in columns(plan)}
        assert best[(3,)] == best[(2,)]  # both stay at (0, 0), whose value halves with the step
        assert plan["values"] == [best[(action,)] for action in range(4)]
        assert any(flags & SHARED for *_, flags in columns(plan))
        assert plan["expansions"][0] == 0
        assert min(plan["expansions"]) >= 0
        assert f"{len(plan['expansions'])} states were expanded, no other can be reached" in plan["words"]


class Coin:
    """Action 0 leads to 1 with probability 0.75, and to -1 otherwise; action 1 ends the episode."""

    num_actions = 2

    def outcomes(self, state, action):
        if action:
            return [(1.0, (state, 0.0, True))]
        return [(0.75, (state + 1, 1.0, False)), (0.25, (state - 1, 0.0, False))]


class JaxCoin(Coin):
    def outcomes(self, state, action):
        steps, ends = jnp.array([1, -1]), jnp.full(2, action == 1)
        after = uamcts.Transition(jnp.where(ends, state, state + steps), jnp.where(ends, 0.0, steps > 0) * 1.0, ends)
        return after, jnp.where(action == 1, jnp.array([1.0, 0.0]), jnp.array([0.75, 0.25]))


def test_outcomes_are_visited_as_often_as_they_are_likely_and_the_record_says_so():
    config = uamcts.SearchConfig(iterations=40, rollouts=1, depth=2, c=0.1, rules="trust")
    plain = reference.search(0, 0, Coin(), None, config)
    compiled = uamcts.search(jax.random.key(0), jnp.int32(0), JaxCoin(), lambda state, action: 0.5 * action, config)
    for result, doubt in ((plain, 0.0), (compiled, 0.5)):
        plan = plan_record(result, (), None if doubt == 0 else config)
        nodes = plan["nodes"]
        top = {nodes["action"][node]: node for node, parent in enumerate(nodes["parent"]) if parent == 0}
        assert [nodes["value"][top[action]] for action in (0, 1)] == plan["values"]  # less what doubt takes off
        below = [node for node, parent in enumerate(nodes["parent"]) if parent == top[0]]
        assert [nodes["chance"][node] for node in below] == [0.75, 0.25]
        likely, other = (nodes["visits"][node] for node in below)
        assert likely + other == nodes["visits"][top[0]]
        assert abs(likely - 3 * other) <= 3
        assert nodes["flags"][top[1]] == ENDS + (DOUBTFUL if doubt else 0)
        assert plan["doubt"] == [0, doubt]
        assert plan["keep"] == [1, 0.01 if doubt else 1]
        assert plan["words"].startswith(result.explain().split("\n")[0])


def test_only_the_most_visited_are_kept():
    class Many:
        num_actions = 30

        def step(self, state, action):
            return state + 1, float(action == 7), False

    result = reference.search(0, 0, Many(), None, uamcts.SearchConfig(iterations=400, rollouts=1, depth=2))
    plan = plan_record(result)
    nodes = plan["nodes"]
    below = [nodes["parent"].count(node) for node in range(len(nodes["parent"]))]
    assert below[0] == max(below) == 10
    assert nodes["more"][0] == 20
    assert len(nodes["parent"]) <= 300
    top = sorted((nodes["visits"][node] for node, parent in enumerate(nodes["parent"]) if parent == 0), reverse=True)
    assert top == sorted(result.visits, reverse=True)[:10]


def test_continuous_actions_have_labels():
    class Throw:
        action_space = (np.full(40, -1.0), np.full(40, 1.0))
        num_actions = None

        def step(self, state, action):
            return state + float(action[0]), -abs(state + float(action[0]) - 0.5), False

    agent = uamcts.Agent(Throw(), iterations=20)
    with agent.record() as recording:
        for change in (0.0, 0.25):
            agent.observe(0.0, agent.act(0.0) + change, 0.3, reward=-0.2, terminal=False)
    move, other = recording.trace()["episodes"][0]["moves"]
    assert other["action"] not in other["plans"][0]["labels"]
    assert (other["believed_reward"], other["numbers"]) == (None, [[0, 0, None, 0.3]])
    agent.observe(0.0, agent.act(0.0), 0.3, reward=-0.2, terminal=False)
    agent._recorded = None
    assert agent.inspect().trace["episodes"][0]["moves"][0]["numbers"][0][3] == 0.3
    plan = move["plans"][0]
    assert len(plan["labels"]) == len(plan["visits"]) > 1
    assert move["action"] == plan["labels"][plan["action"]]
    assert max(map(len, plan["labels"])) <= 60


# What an agent records


def test_moves_say_what_was_believed_and_what_came(recorded):
    agent, path, done = recorded
    trace = read_trace(path)
    moves = [move for episode in trace["episodes"] for move in episode["moves"]]
    assert [(move["numbers"][0][1], trace["actions"].index(move["action"])) for move in moves] == done
    wrong = [move for move in moves if move["mistake"]]
    assert wrong[0]["numbers"] == [[0, 4, 5, 4]]
    assert {move["numbers"][0][1] for move in wrong} == {4}
    assert all((move["surprise"] > 0) == move["mistake"] for move in moves)
    assert trace["features"] == ["state"]
    over = [move for move in moves if move["terminal"]]
    assert over
    assert [(move["numbers"][0][1:], move["reward"], move["believed_terminal"]) for move in over] == [
        ([8, 9, 9], 1, True)
    ] * len(over)
    assert len(trace["episodes"]) == 1 + len(over) - (moves[-1]["terminal"] is True)
    assert agent.inspect().trace == trace


def test_recording_changes_nothing_and_costs_nothing_afterwards(recorded):
    agent = uamcts.Agent(Corridor(), iterations=30)
    assert walk(agent) == recorded[2]
    assert agent._recording is None
    assert recorded[0]._recording is None


def test_without_a_recording_the_latest_decision_is_shown():
    agent = uamcts.Agent(Corridor(), iterations=30)
    with pytest.raises(RuntimeError, match="before act"):
        agent.inspect()
    action = agent.act(3)
    (move,) = agent.inspect().trace["episodes"][0]["moves"]
    assert (move["numbers"], move["surprise"]) == ([[0, 3, 4, None]], None)
    assert move["plans"][0]["words"] == agent.explain().replace(table(agent), "")
    agent.observe(3, action, 3, reward=0.0, terminal=False)
    (move,) = agent.inspect().trace["episodes"][0]["moves"]
    assert (move["numbers"], move["mistake"]) == ([[0, 3, 4, 3]], True)


def table(agent):
    """The table of an explanation, which the page shows as one."""
    return "\n" + "\n".join(agent.explain().split("\n")[1:4])


def test_what_was_done_instead_is_recorded():
    agent = uamcts.Agent(Corridor(), iterations=30)
    with agent.record() as recording:
        assert agent.act(5) == 1
        agent.observe(5, 0, 4, reward=0.0, terminal=False)
        agent.act(4)
        waiting = recording.trace()
        agent.observe(4, 1, 5, reward=0.0, terminal=False)
    first, second = recording.trace()["episodes"][0]["moves"]
    assert (first["action"], first["numbers"], first["mistake"]) == ("left", [[0, 5, 4, 4]], False)
    assert [move["surprise"] for move in waiting["episodes"][0]["moves"]] == [0, None]
    assert second["surprise"] == 0


def test_a_recording_goes_on_when_the_agent_starts_anew():
    class Half(Corridor):
        def step(self, state, action):
            after, reward, over = super().step(state, action)
            return after, reward / 2, over

    agent = uamcts.Agent(Corridor(), iterations=30)
    with agent.record() as recording:
        for change in (lambda: None, agent.forget, lambda: agent.replace(Half())):
            change()
            agent.act(8)
            agent.observe(8, 1, 9, reward=1.0, terminal=True)
    moves = [episode["moves"][0] for episode in recording.trace()["episodes"]]
    assert [(move["believed_reward"], move["mistake"]) for move in moves[:2]] == [(1, False)] * 2
    assert moves[2]["real"] == moves[0]["real"]
    assert recording._scene.backend is agent.backend


def test_a_recording_is_kept_when_the_loop_fails(tmp_path):
    agent = uamcts.Agent(Corridor(), iterations=10)

    def loop():
        with agent.record(tmp_path / "broken.uamcts"):
            return agent.act(0) / 0

    with pytest.raises(ZeroDivisionError):
        loop()
    assert len(read_trace(tmp_path / "broken.uamcts")["episodes"][0]["moves"]) == 1
    with pytest.raises(ValueError, match="no folder"):
        agent.record(tmp_path / "nowhere" / "trace.uamcts")
    with pytest.raises(ValueError, match="is a folder"):
        agent.inspect(tmp_path)
    with pytest.raises(TypeError, match="path is 3"):
        agent.record(3)


@pytest.mark.parametrize("paper", [False, True])
def test_agents_of_a_domain_show_its_board_and_their_own_doubt(paper):
    domain = uamcts.make("two_way")
    make = uamcts.Agent.paper if paper else uamcts.Agent
    agent = make(domain, iterations=4, rollouts=2, depth=4)
    state = domain.from_features([0, 1])
    with agent.record() as recording:
        for _ in range(2):
            agent.act(state)
            after = domain.world(state, 0)
            agent.observe(state, 0, after.state, reward=float(after.reward), terminal=bool(after.terminal))
    trace = recording.trace()
    assert find_problem(trace) == ""
    assert trace["board"]["broken"] == [2]
    first, second = trace["episodes"][0]["moves"]
    agent_thing = [thing["name"] for thing in trace["board"]["things"]].index("agent")
    places = [first[name]["cells"].index(agent_thing) for name in ("now", "believed", "real")]
    assert places == [1, 2, 1]  # the wall at (0, 2) is not known
    assert first["mistake"]
    assert not first["heat"]
    if not paper:  # it has seen the wall: it is a fact now
        assert not second["mistake"]


# Pictures of one's own


def test_render_may_return_cells_text_or_an_image():
    artist = Artist("game", lambda state: [["floor", "floor"], ["floor", state]])
    assert artist.frame("goal") == {"cells": [0, 0, 0, 1]}
    assert artist.frame("#ff0000") == {"cells": [0, 0, 0, 2]}
    assert [thing["colour"] for thing in artist.board()["things"]][2] == "#ff0000"
    numbers = Artist("game", lambda state: np.array([[1, 1, 0]]))
    assert numbers.frame(0)["cells"] == [1, 1, 0]  # 0 is the ground
    assert Artist("game", lambda state: "ab\nc").frame(0) == {"text": "ab\nc"}
    assert "image" in Artist("game", lambda state: np.zeros((400, 300, 3), np.uint8)).frame(0)
    assert Artist("game", None).frame(0) is None
    for picture in (None, 3, [[1, 2], [3]], np.zeros((2, 2, 2, 2)), np.zeros((0, 3))):
        with pytest.raises(ValueError, match=r"(?s)game: render returned .*; return a text"):
            Artist("game", lambda state, picture=picture: picture).frame(0)
    with pytest.raises(ValueError, match="render raised ZeroDivisionError"):
        Artist("game", lambda state: 1 / 0).frame(0)
    sizes = Artist("game", lambda state: np.zeros((state, 2), int))
    assert sizes.frame(2) == {"cells": [0, 0, 0, 0]}
    with pytest.raises(ValueError, match="boards of one size"):
        sizes.frame(3)
    assert sizes.board()["rows"] == 2


def test_images_are_pngs_of_the_same_pixels():
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)
    assert image.open(io.BytesIO(png(np.zeros((1000, 10))))).size == (2, 143)
    checks = np.indices((320, 4)).sum(axis=0) % 2 * 255  # two pixels a side become their mean
    assert set(np.asarray(image.open(io.BytesIO(png(checks.astype(np.uint8))))).ravel().tolist()) == {128}
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3)).astype(np.uint8)
    assert len(png(noise)) < 1.5 * MOST_BYTES


def test_equal_images_are_kept_once():
    class Shown(Corridor):
        def render(self, state):
            return np.full((4, 4, 3), 20 * state, np.uint8)

    agent = uamcts.Agent(Shown(), iterations=5)
    with agent.record() as recording:
        walk(agent)
    trace = recording.trace()
    moves = [move for episode in trace["episodes"] for move in episode["moves"]]
    shown = [move[name]["image"] for move in moves for name in ("now", "believed", "real")]
    assert len(set(trace["images"])) == len(trace["images"]) == max(shown) + 1 < len(shown) / 2
    assert "image is" in find_problem(changed(trace, ("episodes", 0, "moves", 0, "now", "image"), 99))


class Drawn(Corridor):
    def render(self, state):
        return [["player" if state == place else "floor" for place in range(10)]]


def test_u_is_mapped_to_the_cells_of_a_board_of_ones_own():
    """The wall at 4 is met; from then on U of a step to the right is above 0 there, and the cell is marked."""
    agent = uamcts.Agent(Drawn(), iterations=30, corrections=())
    with agent.record() as recording:
        walk(agent)
    trace = recording.trace()
    assert trace["board"]["broken"] == [4]
    met = [move["mistake"] for move in trace["episodes"][0]["moves"]].index(True)
    later = [move for move in trace["episodes"][0]["moves"][met + 1 :] if move["action"] == "right"]
    assert later
    assert [cell for cell, _ in later[0]["heat"]] == [4]
    assert later[0]["heat"][0][1] > 0
    assert not any(move["heat"] for move in trace["episodes"][0]["moves"][: met + 1])


def test_a_place_is_found_among_the_numbers_of_a_state():
    """Numbers 2 and 0 are row and column of thing 7; number 1 is a clock that is in the board now and then."""
    cells = PlayerCells()

    def see(vector):
        board = [0] * 12
        board[4 * vector[2] + vector[0]] = 7
        cells.see(np.array(vector, float), board, (3, 4))

    see((1, 0, 1))
    assert cells.pair is None  # it has not moved
    see((3, 2, 2))
    assert cells.pair == (2, 0)
    assert cells.cell_of(np.array([3.0, 5.0, 1.0])) == 7
    assert cells.cell_of(np.array([3.5, 5.0, 1.0])) is None
    found = cells.states((1, 9.5, 1), np.array)
    assert found[11] == (3, 9.5, 2)
    assert len(found) == 12
    assert cells.states((1, 9.5, 1), lambda state: np.array([*state[:2], 1.0])) == {}  # not the state's own numbers
    cells.see(np.array([0.0, 0.0, 0.0]), [7, 7, *[0] * 10], (3, 4))
    assert cells.pair is None  # there are two of them


def test_a_render_without_a_state_is_left_alone():
    class Screen(Corridor):
        def render(self):
            raise AssertionError

    agent = uamcts.Agent(Screen(), iterations=5)
    agent.act(0)
    assert agent.inspect().trace["board"] is None


# The file


def test_a_trace_comes_back_as_it_was(recorded, tmp_path):
    trace = read_trace(recorded[1])
    write_trace(tmp_path / "again.uamcts", trace)
    assert (tmp_path / "again.uamcts").read_bytes() == recorded[1].read_bytes() == pack(trace)


def complaint(path, trace):
    """Why a file is refused; nothing if it still holds the trace."""
    try:
        found = read_trace(path)
    except ValueError as error:
        return str(error)
    assert found == trace
    return ""


def test_a_damaged_file_is_refused_or_the_same(recorded, tmp_path):
    content, trace = recorded[1].read_bytes(), read_trace(recorded[1])
    path, random, refused = tmp_path / "bad.uamcts", np.random.default_rng(0), 0
    for place in [*range(12), *random.integers(12, len(content), 60).tolist(), *range(len(content) - 8, len(content))]:
        broken = bytearray(content)
        broken[place] ^= 1 << int(random.integers(8))
        path.write_bytes(broken)
        said = complaint(path, trace)
        refused += bool(said)
        assert not said or (str(path) in said and ";" in said and "\n" not in said)
    assert refused >= 68
    for cut in (0, 1, 2, 11, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=r"bad\.uamcts is"):
            read_trace(path)
    path.write_bytes(content + b"more")
    with pytest.raises(ValueError, match="behind its end"):
        read_trace(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "is not a trace"),
        ('{"format": "uamcts trace", "version": 1}', "version 1, not 2"),
        ('{"format": "uamcts trace", "version": true}', "version True, not 2"),
        ('{"format": "uamcts trace", "version": 2}', "is damaged"),
        ("[" * 100000, "does not hold JSON"),
        ("NaN", "does not hold JSON"),
        ("9" * 10000, "does not hold JSON"),
        ("\udcff", "does not hold JSON"),
    ],
)
def test_other_documents_are_refused(tmp_path, text, complaint):
    path = tmp_path / "other.uamcts"
    path.write_bytes(gzip.compress(text.encode(errors="surrogateescape")))
    with pytest.raises(ValueError, match=complaint):
        read_trace(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("uamcts.inspector.trace.LARGEST_TEXT", 2**20)
    (tmp_path / "bomb.uamcts").write_bytes(gzip.compress(b" " * (2**20 + 1)))
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_trace(tmp_path / "bomb.uamcts")


def places(part, path=()):
    """Where the values of a document are; of a list, the first entry stands for all."""
    inner = part.items() if isinstance(part, dict) else enumerate(part[:1]) if isinstance(part, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(trace, path, value):
    other = copy.deepcopy(trace)
    part = other
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return other


def test_no_part_of_a_trace_may_be_something_else(recorded):
    trace = read_trace(recorded[1])
    trace["episodes"] = [{**trace["episodes"][0], "moves": trace["episodes"][0]["moves"][4:5]}]
    assert find_problem(trace) == ""
    looked = list(places(trace))
    assert len(looked) > 60
    for path in looked:
        for wrong in ({"x": [1]}, [[["x"]]], 10**400, float("inf"), "x" * 500000, -7.5):
            if wrong == -7.5 and ("settings" in path or is_number_place(trace, path)):
                continue
            problem = find_problem(changed(trace, path, wrong))
            assert problem, (path, wrong)
            assert len(problem) < 500
    assert "plans.action" in find_problem(changed(trace, ("episodes", 0, "moves", 0, "plans", 0, "action"), 2))
    with pytest.raises(ValueError, match="trace is not one"):
        Inspection({"format": "x"})


def is_number_place(trace, path):
    """Whether any number is legal there."""
    part = trace
    for key in path:
        part = part[key]
    return type(part) in (int, float) or part is None


def test_300_moves_with_full_trees_take_less_than_5_megabytes(recorded):
    trace, random = copy.deepcopy(read_trace(recorded[1])), np.random.default_rng(0)
    count = 300
    (move, *_) = trace["episodes"][0]["moves"]

    def full():
        other = copy.deepcopy(move)
        nodes = {
            "parent": [-1, *(int(random.integers(place)) for place in range(1, count))],
            "action": random.integers(0, 18, count).tolist(),
            "visits": random.integers(0, 500, count).tolist(),
            "value": [float(f"{one:.4g}") for one in random.normal(size=count)],
            "doubt": [float(f"{one:.4g}") for one in random.random(count)],
            "chance": [None] * count,
            "flags": random.integers(0, 2, count).tolist(),
            "more": random.integers(0, 3, count).tolist(),
        }
        other["plans"][0] |= {"nodes": nodes, "expansions": random.integers(-1, count, 500).tolist()}
        other["plans"][0]["ends"] = random.integers(-1, count, 500).tolist()
        return other

    trace["episodes"] = [{"planner": 0, "moves": [full() for _ in range(count)]}]
    assert len(pack(trace)) < 5e6


# The page and the commands


HOSTILE = "</script><img src=x onerror=alert(1)>{script}{trace}\\u2028<!--"


def test_nothing_in_a_trace_becomes_markup(recorded):
    trace = {**read_trace(recorded[1]), "title": HOSTILE, "actions": [HOSTILE, "right"]}
    page = Inspection(trace).html
    assert page.count("</script>") == 2
    assert "<img" not in page.replace("&lt;img", "")
    assert "onerror" not in page.split("<title>")[1].split("</title>")[1]
    inline = Inspection(trace)._repr_html_()
    assert inline.startswith("<iframe srcdoc=")
    assert inline.count("<") == 2


def test_the_commands(recorded, tmp_path):
    made = runner.invoke(app, ["inspect", str(recorded[1]), "-o", str(tmp_path / "plan.html")])
    assert made.exit_code == 0, made.output
    assert (tmp_path / "plan.html").read_text() == Inspection(recorded[1]).html
    (tmp_path / "bad.uamcts").write_text("{}")
    for arguments, code, said in (
        (["inspect", str(tmp_path / "none.uamcts")], 1, "none.uamcts does not exist; give a trace file, which"),
        (["inspect", str(tmp_path)], 1, "is a folder; give a trace file"),
        (["inspect", str(recorded[1]), "-o", str(tmp_path / "p.txt")], 2, "ends in .html"),
        (["play", "two_way", "--html", str(tmp_path / "p.txt")], 2, "ends in .html, like plan.html"),
        (["inspect", str(tmp_path / "bad.uamcts")], 2, "is not a trace; give a file that"),
        (["inspect", str(recorded[1]), "-o", str(tmp_path / "x" / "y.html")], 2, "there is no folder"),
        (["play", "two_way", "--html", str(tmp_path / "x" / "y.html")], 2, "html is"),
    ):
        result = runner.invoke(app, arguments)
        assert result.exit_code == code, result.output
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_play_lets_every_planner_plan_in_the_states_of_the_others(tmp_path):
    path = tmp_path / "two.uamcts"
    arguments = ["play", "two_way", "--algorithm", "mcts", "--algorithm", "random", "--steps", "4", "--quiet"]
    result = runner.invoke(app, [*arguments, "--trace", str(path), "--html", str(tmp_path / "two.html")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "two.html").exists()
    trace = read_trace(path)
    assert [planner["name"] for planner in trace["planners"]] == ["MCTS", "random"]
    mine, others = trace["episodes"]
    assert [episode["planner"] for episode in (mine, others)] == [0, 1]
    assert all(move["plans"][0] and move["plans"][1] is None for move in (*mine["moves"], *others["moves"]))
    assert all(move["action"] == trace["actions"][move["plans"][0]["action"]] for move in mine["moves"])
    assert mine["moves"][0]["plans"][0] == others["moves"][0]["plans"][0]  # the same state, the same draws
    assert json.loads(json.dumps(trace)) == trace


def test_the_end_of_an_episode_is_marked():
    config = uamcts.SearchConfig(iterations=20, rollouts=1, depth=3)
    plan = plan_record(reference.search(0, 8, Corridor(), None, config))
    assert [path for path, _, _, flags in columns(plan) if flags & ENDS] == [(1,)]
