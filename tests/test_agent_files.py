"""Files of agents that are damaged, foreign or made up: they are refused in words, and the agent is as it was."""

import dataclasses
import enum
import io
import json
import zipfile
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent import checkpoint

TABLES = ("kept.count.npy", "tally.count.npy", "buffer.count.npy")
CONFIG = uamcts.SearchConfig(iterations=4, rollouts=1, depth=3, rules="released", gamma=1.0)


class Line:
    num_actions = 2
    name = "line"

    def step(self, state, action):
        return (state[0] + (1 if action else -1), 7), 0.5, state[0] > 8


def jax_line():
    def step(state, action):
        return uamcts.Transition(state + jnp.where(action == 1, 1, -1), 0.5 * (state[0] < 9), state[0] > 8)

    return uamcts.JaxSimulator(step, 2, jnp.zeros(2, jnp.int32), name="line")


JAX_LINE = jax_line()
"""One for all agents, which then share compiled programs."""
DOMAIN = uamcts.make("two_way")
KINDS = {
    "plain": (lambda: uamcts.Agent(Line(), config=CONFIG), lambda n: (n, 7)),
    "compiled": (lambda: uamcts.Agent(JAX_LINE, config=CONFIG), lambda n: jnp.array([n, 7], jnp.int32)),
    "domain": (
        lambda: uamcts.Agent.paper(DOMAIN, "linear", CONFIG, uamcts.Schedule(interval=3), minibatches=5, memory=True),
        lambda n: DOMAIN.from_features((n % 3, n % 7)),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def saved(request, tmp_path_factory):
    """A file, the agent that it is loaded into, and what that agent knows."""
    fresh, state = KINDS[request.param]
    path = tmp_path_factory.mktemp("agent") / "agent"
    agent = fresh()
    for number in (1, 2, 4):
        agent.observe(state(number), 1, state(number), reward=0.25, terminal=False)
    agent.save(path)
    other = fresh()
    other.observe(state(3), 0, state(3), reward=0.25, terminal=False)
    return request.param, path.read_bytes(), other, content(other, path.parent)


def content(agent, folder):
    agent.save(folder / "content")
    return (folder / "content").read_bytes()


def parts_of(file):
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def put_together(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def refused(agent, before, file, folder):
    """Loads a file that must not be taken, and changes nothing; returns what was said."""
    said = not_taken(agent, file, folder)
    assert content(agent, folder) == before
    return said


def not_taken(agent, file, folder):
    """Loads a file that must not be taken; returns what was said."""
    (folder / "file").write_bytes(file)
    with pytest.raises(ValueError, match="file") as caught:
        agent.load(folder / "file")
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def test_every_array_is_missed_and_looked_at(saved, tmp_path):
    """Removed, renamed, of another dtype, of another shape, empty, or with an axis more: one array after the other."""
    _, file, agent, before = saved
    parts = parts_of(file)
    for name, part in parts.items():
        if name == checkpoint.HEAD:
            continue
        array = np.lib.format.read_array(io.BytesIO(part))
        others = {key: value for key, value in parts.items() if key != name}
        not_taken(agent, put_together(others), tmp_path)
        not_taken(agent, put_together({**others, f"x{name}": part}), tmp_path)
        retyped = array.astype(np.float32 if array.dtype != np.float32 else np.int64)
        for changed in (retyped, array[None], array.astype(array.dtype.newbyteorder(">")).astype("S8")):
            not_taken(agent, put_together({**others, name: npy(changed)}), tmp_path)
        computed_anew = "slots" in name or "filters" in name
        if array.ndim and array.shape[0] and not computed_anew and "json" not in name:
            not_taken(agent, put_together({**others, name: npy(array[:-1])}), tmp_path)
        assert content(agent, tmp_path) == before, name


def test_flipped_bits_are_noticed_or_change_nothing(saved, tmp_path):
    """300 single bits, all over the file: refused, or loaded as the file that it was."""
    kind, file, _, _ = saved
    expected = KINDS[kind][0]()
    (tmp_path / "good").write_bytes(file)
    expected.load(tmp_path / "good")
    right = content(expected, tmp_path)
    rng = np.random.default_rng(0)
    twin = KINDS[kind][0]()
    taken = 0
    for place in np.sort(rng.choice(8 * len(file), 300, replace=False)):
        flipped = bytearray(file)
        flipped[place // 8] ^= 1 << (place % 8)
        (tmp_path / "file").write_bytes(flipped)
        try:
            twin.load(tmp_path / "file")
        except ValueError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017 (whether it raises depends on the bit)
        else:
            taken += 1
            assert content(twin, tmp_path) == right, f"bit {place} changed what was loaded"
    assert taken < 150


def test_numbers_that_cannot_be_are_refused(saved, tmp_path):
    kind, file, agent, before = saved
    parts = parts_of(file)
    prefix = "['mind']" if kind == "domain" else "['counters']"
    wrong = {
        "['experience']['action'].npy": lambda a: a + 7,
        "['experience']['times'].npy": lambda a: a * 0,
        "['experience']['features'].npy": lambda a: a * np.nan,
        "['experience']['square'].npy": lambda a: a - 1e9,
        "['experience']['rewards'].npy": lambda a: a * np.nan,
        "['experience']['moments'].npy": lambda a: a * 0 - 1,
        "['experience']['real_terminal'].npy": lambda a: a + 3,
    }
    names = {"tau": 0, "steps": -1} if kind != "domain" else {}
    wrong |= {f"{prefix}['{name}'].npy": lambda a, to=to: np.full_like(a, to) for name, to in names.items()}
    wrong |= {
        name: lambda a: a * 0 - 1
        for name in parts
        if name.endswith((*TABLES, ".tau.npy", ".steps.npy")) or name == "['mind'][2].npy"
    }
    wrong |= {name: lambda a: a * 0 + 10**6 for name in parts if name.endswith(TABLES)}
    wrong |= {name: lambda a: a * np.nan for name in parts if ".network" in name and "weight" in name}
    for name, change in wrong.items():
        array = np.lib.format.read_array(io.BytesIO(parts[name]))
        refused(agent, before, put_together({**parts, name: npy(change(array).astype(array.dtype))}), tmp_path)


def test_broken_slots_are_mended(tmp_path):
    """Where rows lie is not believed: it is computed anew, so that a search always comes to an end."""
    for kind in ("compiled", "domain"):
        fresh, state = KINDS[kind]
        agent = fresh()
        agent.observe(state(1), 1, state(1), reward=0.25, terminal=False)
        agent.save(tmp_path / "agent")
        parts = parts_of((tmp_path / "agent").read_bytes())
        for name in [name for name in parts if "slots" in name]:
            array = np.lib.format.read_array(io.BytesIO(parts[name]))
            parts[name] = npy(array * 0 + 3)
        (tmp_path / "broken").write_bytes(put_together(parts))
        again = fresh()
        again.load(tmp_path / "broken")
        assert content(again, tmp_path) == (tmp_path / "agent").read_bytes()
        assert again.act(state(2)) == agent.act(state(2))


def test_what_unpacks_to_too_much_is_not_unpacked(saved, tmp_path, monkeypatch):
    """Declared sizes are looked at before anything is read: in the directory, and in the header of an array."""
    _, file, agent, before = saved
    parts = parts_of(file)
    name = "['experience']['times'].npy"
    large = npy(np.zeros(2**20, np.int64))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "LARGEST", 2**21)
        assert "unpacks to" in refused(agent, before, put_together({**parts, name: large}), tmp_path)
        patch.setattr(checkpoint, "LARGEST", 100)
        assert "at most" in refused(agent, before, file, tmp_path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2**40,)})
    said = refused(agent, before, put_together({**parts, name: header.getvalue() + bytes(64)}), tmp_path)
    assert "promises" in said


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b"5",
        b"{",
        b"[" * 100_000,
        b'{"kind": "agent", "format": 2, "about": []}',
        b'{"kind": 5}',
        b'{"kind": "agent", "format": 1}',
    ],
)
def test_odd_heads_are_refused(saved, tmp_path, head):
    _, file, agent, before = saved
    refused(agent, before, put_together({**parts_of(file), checkpoint.HEAD: head}), tmp_path)


CLOCK, ABOUT = [3, 0, 0.0], [1, 1.0, False, 1, 0, False]


def fact_row(state=(1, 7), action=0, ends=True, times=1, about=ABOUT):
    """A fact as it is saved."""
    saved = {"is": state} if not isinstance(state, tuple) else {"tuple": [{"is": part} for part in state]}
    return [saved, action, [[saved, ends, times, 0.0, False]], about]


@pytest.mark.parametrize(
    "rows",
    [
        b"{}",
        b"[5]",
        b"[[1, 2, 3]]",
        b"[[null, 0, []]]",
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000,
        *(
            json.dumps({"rows": rows, "clock": clock, "effects": None}).encode()
            for rows, clock in (
                ([fact_row(1, action=7)], CLOCK),
                ([fact_row("here")], CLOCK),
                ([fact_row(ends="no")], CLOCK),
                ([fact_row(times=0)], CLOCK),
                ([[{"array": "AAAA", "dtype": "O", "shape": [1]}, 0, [], ABOUT]], CLOCK),
                ([fact_row(about=[1, 2.0, False, 1, 0, False])], CLOCK),
                ([fact_row(about=[1, 1.0, "no", 1, 0, False])], CLOCK),
                ([fact_row(about=[0, 1.0, False, 1, 0, False])], CLOCK),
                ([fact_row(about=[])], CLOCK),
                ([], [0, 0]),
                ([], [-1, 0, 0.0]),
                ([fact_row((1,))], CLOCK),
            )
        ),
    ],
)
def test_odd_facts_are_refused(tmp_path, rows):
    """The last one is a fact about a state of one number, in a file about states of two."""
    fresh, state = KINDS["plain"]
    agent = fresh()
    agent.observe(state(1), 1, state(1), reward=0.25, terminal=False)
    before = content(agent, tmp_path)
    parts = parts_of(before)
    name = "['facts']['json'].npy"
    refused(agent, before, put_together({**parts, name: npy(np.frombuffer(rows, np.uint8))}), tmp_path)


def test_states_with_another_number_of_features_are_refused(tmp_path):
    """At once where the agent has met a state or the file holds one, and else with the first state."""
    short = uamcts.Agent(Line(), config=CONFIG, features=lambda state: [state[0]])
    short.observe((1, 7), 1, (1, 7), reward=0.25, terminal=False)
    short.save(tmp_path / "file")
    whole = KINDS["plain"][0]()
    before = content(whole, tmp_path)
    assert "its states have 1 features, here they have 2" in refused(
        whole, before, (tmp_path / "file").read_bytes(), tmp_path
    )
    forgetful = uamcts.Agent(Line(), config=CONFIG, features=lambda state: [state[0]], memory=False)
    forgetful.observe((1, 7), 1, (1, 7), reward=0.25, terminal=False)
    forgetful.save(tmp_path / "file")
    other = uamcts.Agent(Line(), config=CONFIG, memory=False)
    other.act((1, 7))
    refused(other, content(other, tmp_path), (tmp_path / "file").read_bytes(), tmp_path)
    blank = uamcts.Agent(Line(), config=CONFIG, memory=False)
    blank.load(tmp_path / "file")
    with pytest.raises(ValueError, match="which has 2 features; those that this agent has seen, or loaded"):
        blank.act((1, 7))


# States that are objects


class Named(NamedTuple):
    place: int
    door: bool


@dataclasses.dataclass
class Data:
    place: int
    inside: Named


@dataclasses.dataclass(frozen=True)
class Frozen:
    place: int
    seen: np.ndarray


class Colour(enum.Enum):
    RED = 1


class Own:
    def __init__(self, place):
        self.place = place
        self.colour = Colour.RED


class Hashed(Own):
    def __eq__(self, other):
        return self.place == other.place

    def __hash__(self):
        return hash(self.place)


MAKERS = {
    "named": lambda n: Named(n, True),
    "data": lambda n: Data(n, Named(n, False)),
    "frozen": lambda n: Frozen(n, np.array([n, 0.5])),
    "object": Own,
    "hashed": Hashed,
    "set": lambda n: {"at": {n}, 5: None},
}


@pytest.mark.parametrize("kind", MAKERS)
def test_states_of_every_kind_are_remembered_saved_and_found_again(kind, tmp_path):
    """A fresh agent, which has met no such state yet, plans with the facts of the file from its first move on."""
    make = MAKERS[kind]

    def place_of(state):
        return next(iter(state["at"])) if isinstance(state, dict) else state.place

    def step(state, action):
        return make(place_of(state) + (1 if action else -1)), 0.0, False

    def fresh():
        return uamcts.Agent(step, num_actions=2, config=CONFIG, features=lambda state: [place_of(state)])

    agent = fresh()
    for _ in range(3):
        agent.observe(make(3), 1, make(3), reward=5.0, terminal=True)
    assert agent.report().memory == (1, 3, 0)
    agent.save(tmp_path / "agent")
    again = fresh()
    again.load(tmp_path / "agent")
    again.save(tmp_path / "before any state")
    assert (tmp_path / "before any state").read_bytes() == (tmp_path / "agent").read_bytes()
    assert again.act(make(3)) == agent.act(make(3))
    assert again.last_plan.values[1] == 5.0
    assert again.report().memory == (1, 3, 0)


def test_a_class_is_never_imported_because_a_file_names_it(tmp_path):
    """A file names a class of the standard library: the fact waits for a state of that class, which never comes."""
    fresh, state = KINDS["plain"]
    agent = fresh()
    agent.observe(state(1), 1, state(1), reward=0.25, terminal=False)
    parts = parts_of(content(agent, tmp_path))
    evil = {"object": {"args": {"is": "touch /tmp/x"}}, "of": "Popen"}
    fact = [evil, 0, [[evil, False, 1, 0.0, False, []]], [1, 1.0, False, 1, 0, False]]
    rows = json.dumps({"rows": [fact], "clock": [1, 0, 0.0, 0.0, 0.0, 0.0], "effects": None}).encode()
    parts["['facts']['json'].npy"] = npy(np.frombuffer(rows, np.uint8))
    (tmp_path / "file").write_bytes(put_together(parts))
    again = fresh()
    again.load(tmp_path / "file")
    again.act(state(1))
    assert again.report().memory.facts == 0


def test_what_cannot_be_saved_is_told(tmp_path):
    class Handle:
        def __init__(self, place):
            self.place, self.open = place, iter([1])

    def step(state, action):
        return Handle(state.place + 1), 0.0, False

    agent = uamcts.Agent(
        step, num_actions=2, config=CONFIG, features=lambda state: [state.place], identity=lambda state: state.place
    )
    agent.observe(Handle(1), 1, Handle(1), reward=0.0, terminal=False)
    with pytest.warns(UserWarning, match="1 of 1 remembered transitions are not in the file"):
        agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"cannot be told from others .* pass identity="):
        uamcts.Agent(step, num_actions=2, features=lambda state: [state.place]).act(Handle(1))
