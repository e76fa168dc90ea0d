"""`uamcts.Agent` and its files: a loop of one's own, saving, loading, and files that are not what they should be."""

import io
import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.agent import checkpoint

SCHEDULE = uamcts.Schedule(interval=20)


def an_agent(seed=0, estimator=None, name="two_way"):
    domain = uamcts.make(name)
    config = uamcts.SearchConfig(iterations=5, rollouts=2, depth=10)
    return uamcts.Agent.paper(domain, estimator, config, SCHEDULE, seed=seed, minibatches=30)


def walk(agent, steps):
    """A loop as a user writes it; returns the actions and when the agent learned."""
    world, state, actions, lessons = (
        jax.jit(agent.backend.domain.world),
        agent.backend.domain.reset(jax.random.key(0)),
        [],
        [],
    )
    for step in range(steps):
        action = agent.act(state)
        after = world(state, action)
        if agent.observe(state, action, after.state, terminal=bool(after.terminal)):
            lessons.append(step + 1)
        actions.append(action)
        state = agent.backend.domain.reset(jax.random.key(step)) if after.terminal else after.state
    return actions, lessons


@pytest.fixture(scope="module")
def walked():
    agent = an_agent()
    return agent, walk(agent, 50)


def test_it_learns_when_it_is_time(walked):
    agent, (actions, lessons) = walked
    assert lessons == [20, 40]
    assert agent.steps == 50
    assert agent.tau == pytest.approx(0.1)
    assert agent.loss is not None
    assert len(set(actions)) > 1
    assert agent.estimator.trained
    assert agent.last_plan.visits.sum() == 5


def test_equal_seeds_act_alike(walked):
    _, (actions, _) = walked
    assert walk(an_agent(), 50)[0] == actions
    assert walk(an_agent(seed=1), 50)[0] != actions


def test_a_loaded_agent_goes_on_as_the_saved_one(walked, tmp_path):
    agent, _ = walked
    agent.save(tmp_path / "agent")
    other = an_agent(seed=7)
    other.load(tmp_path / "agent")
    assert (other.steps, other.tau, other.loss) == (agent.steps, agent.tau, agent.loss)
    state = agent.backend.domain.reset(jax.random.key(0))
    before = agent.backend.acts
    assert [other.act(state) for _ in range(5)] == [agent.act(state) for _ in range(5)]
    agent.backend.acts = before


def test_the_file_is_arrays_and_json(walked, tmp_path):
    """Any zip program reads it; no array in it needs pickle."""
    walked[0].save(tmp_path / "agent")
    with zipfile.ZipFile(tmp_path / "agent") as archive:
        head = json.loads(archive.read(checkpoint.HEAD))
        for name in archive.namelist():
            if name != checkpoint.HEAD:
                with archive.open(name) as file:
                    np.lib.format.read_array(file, allow_pickle=False)
    assert head["kind"] == "agent"
    assert head["about"] == {"domain": "two_way", "estimator": "LinearEstimator"}
    assert [path.name for path in tmp_path.iterdir()] == ["agent"], "something was left behind"


def damaged(content, how):
    return {"empty": b"", "cut": content[: len(content) // 2], "text": b"hello", "flipped": _flipped(content)}[how]


def _flipped(content):
    """One byte changed, in the middle of the largest array: readers ignore some bytes of the headers between arrays."""
    largest = max(zipfile.ZipFile(io.BytesIO(content)).infolist(), key=lambda entry: entry.compress_size)
    place = largest.header_offset + 30 + len(largest.filename) + largest.compress_size // 2
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


@pytest.mark.parametrize("how", ["empty", "cut", "text", "flipped"])
def test_a_damaged_file_is_refused_and_changes_nothing(walked, tmp_path, how):
    agent = walked[0]
    agent.save(tmp_path / "agent")
    content = (tmp_path / "agent").read_bytes()
    (tmp_path / "agent").write_bytes(damaged(content, how))
    before = agent.backend.knowledge
    with pytest.raises(ValueError, match="is damaged or was not written by uamcts"):
        agent.load(tmp_path / "agent")
    assert agent.backend.knowledge is before


def test_every_cut_is_noticed(walked, tmp_path):
    """Truncated at 40 places from the first byte to the last but one: always an error, never a half agent."""
    agent = walked[0]
    agent.save(tmp_path / "agent")
    content, before = (tmp_path / "agent").read_bytes(), agent.backend.knowledge
    for place in np.linspace(0, len(content) - 1, 40).astype(int):
        (tmp_path / "agent").write_bytes(content[:place])
        with pytest.raises(ValueError, match="damaged"):
            agent.load(tmp_path / "agent")
    assert agent.backend.knowledge is before


def test_a_pickle_is_not_opened(walked, tmp_path):
    """An array of objects would have to be unpickled: it is refused."""
    agent = walked[0]
    agent.save(tmp_path / "agent")
    with zipfile.ZipFile(tmp_path / "agent") as archive:
        names = archive.namelist()
        contents = {name: archive.read(name) for name in names}
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    contents[names[1]] = (tmp_path / "evil.npy").read_bytes()
    with zipfile.ZipFile(tmp_path / "agent", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="damaged"):
        agent.load(tmp_path / "agent")


def test_a_foreign_file_is_refused(walked, tmp_path):
    walked[0].save(tmp_path / "agent")
    with pytest.raises(ValueError, match="written with domain 'two_way', here it is 'two_way_icy'"):
        an_agent(name="two_way_icy").load(tmp_path / "agent")
    with pytest.raises(ValueError, match="written with estimator 'LinearEstimator', here it is 'NetworkEstimator'"):
        an_agent(estimator="network").load(tmp_path / "agent")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not written by uamcts"):
        walked[0].load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        walked[0].load(tmp_path / "nothing")


def test_a_failed_save_leaves_the_old_file(walked, tmp_path, monkeypatch):
    """The disk fills up while writing: the error comes through, the old file stays, nothing is left behind."""
    agent = walked[0]
    agent.save(tmp_path / "agent")
    content = (tmp_path / "agent").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        agent.save(tmp_path / "agent")
    assert (tmp_path / "agent").read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 1


def test_more_samples_than_room(tmp_path):
    """The buffer grows in an open loop: after 3 intervals all samples are there, terminal ones ten times."""
    agent = uamcts.Agent.paper(
        uamcts.make("two_way"), "linear", uamcts.SearchConfig(iterations=2, rollouts=1, depth=2),
        uamcts.Schedule(interval=15), minibatches=5,
    )  # fmt: skip
    state = agent.backend.domain.reset(jax.random.key(0))
    for step in range(45):
        agent.observe(state, 0, state, terminal=step % 3 == 0)
    buffer = agent.estimator.regression.buffer
    assert int(buffer.count) == 45 + 15 * 9
    agent.save(tmp_path / "agent")
    fresh = an_agent(estimator="linear")
    fresh.load(tmp_path / "agent")
    assert int(fresh.estimator.regression.buffer.count) == 45 + 15 * 9
    assert fresh.observe(state, 0, state) is False


def test_wrong_arguments_are_named():
    domain = uamcts.make("two_way")
    with pytest.raises(TypeError, match=r"model is 'breakout'; give uamcts.make"):
        uamcts.Agent("breakout")
    with pytest.raises(ValueError, match="unknown estimator 'forest'"):
        uamcts.Agent.paper(domain, "forest")
    agent = an_agent()
    with pytest.raises(TypeError, match="state is 3; it is not a state of two_way"):
        agent.act(3)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), domain.reset(jax.random.key(0)))
    with pytest.raises(ValueError, match="give one state, not a batch"):
        agent.act(batch)
    state = domain.reset(jax.random.key(0))
    with pytest.raises(ValueError, match="action is 4; two_way has the actions"):
        agent.observe(state, 4, state)
    assert agent.steps == 0


def test_an_estimator_of_ones_own():
    """A subclass with nothing but `predict` is an estimator."""

    class Wary(uamcts.Estimator):
        def predict(self, state, action):
            return jnp.where(action == 0, 0.5, 0.0)

    agent = an_agent(estimator=Wary())
    state = agent.backend.domain.from_features((2, 3))
    agent.act(state)
    np.testing.assert_array_equal(agent.last_plan.uncertainty, [0.5, 0, 0, 0])
