"""What several tests share. Programs are kept as long as there is room: compiling is most of the time here."""

import atexit
import ctypes
import functools
import gc
import math
import os
import shutil
import tempfile
from pathlib import Path

from quick_flags import QUICK

# Before JAX starts. One thread for each of pytest's workers; what one of them compiles, the others need not.
os.environ.setdefault("PJRT_NPROC", "1")
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="uamcts-compiled-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # to read even the smallest takes half as long
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)
os.environ.setdefault("XLA_FLAGS", QUICK)  # `make test-all` compiles as users do
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # no lines of source in programs: nobody reads them here

import jax
import pytest
import shape_checks
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook(shape_checks.MODULES, "shape_checks.check_shapes")  # before the modules are imported
install_import_hook(shape_checks.ESTIMATORS, "shape_checks.check_estimators")

import uamcts
from uamcts.agent import alarm


def make_once(factory):
    """Equal domains are one object: searches and agents share compiled programs only if they share the domain."""
    kept = functools.lru_cache(maxsize=None, typed=True)(factory)

    @functools.wraps(factory)
    def make(**options):
        try:
            hash(tuple(options.values()))
        except TypeError:
            return factory(**options)
        return kept(**options)

    return make


uamcts.DOMAINS.update({name: make_once(factory) for name, factory in uamcts.DOMAINS.items()})

alarm.SLOW_MOVE = math.inf  # machines that run tests are busy, and no test asserts a time
# A first example compiles, and no test asserts a time. Every run tries the same examples, so it fails for what changed.
settings.register_profile("untimed", deadline=None, derandomize=True)
settings.load_profile("untimed")

NAMES = tuple(uamcts.DOMAINS)
PAPERS = ("space_invaders", "freeway", "breakout", "two_way", "two_way_icy")


SLOWEST = (
    "test_versions",
    "test_graph_search",
    "test_lab",
    "test_documents",
    "test_cli",
    "test_compiled_corrections",
    "test_online",
    "test_guided_tree",
    "test_uncertainty",
    "test_calibration",
    "test_domains",
    "test_agent_files",
    "test_trust",
    "test_random_simulators",
    "test_types",
    "test_agent_runs",
    "test_estimators",
    "test_bandits",
    "test_field",
    "test_records",
    "test_random_domains",
    "test_gym_simulator",
    "test_report",
    "test_chance_tree",
    "test_own_simulator",
    "test_agent_resumes",
    "test_search",
    "test_baselines",
    "test_folders",
    "test_chance_engines",
    "test_all_or_nothing",
    "test_memory",
)
"""Files that take longest, the longest first."""


def pytest_collection_modifyitems(items):
    """Slow files first: a worker that is handed one of them last lets the other wait for minutes."""
    place = {name: index for index, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_collection_finish():
    """Tracing leaves many small objects behind: Python looks for garbage less often, and not among the modules."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


MOST_BYTES = 2.5e9
"""What a worker may take up. If nothing were dropped, it would be 5 GB in the end."""


def bytes_in_use():
    """The memory of this process, on Linux; elsewhere nothing is dropped."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


def pytest_runtest_teardown(item, nextitem):
    """Between two files: a worker that has grown large drops its programs, few of which another file needs."""
    if nextitem is not None and nextitem.path != item.path and bytes_in_use() > MOST_BYTES:
        jax.clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what was freed
        if trim is not None:
            trim(0)


@pytest.fixture(params=NAMES)
def domain(request):
    return uamcts.make(request.param)


@pytest.fixture(scope="session")
def trajectories():
    """Plays fixed actions from given starts: `trajectories(domain)(states, actions [n, t])` gives transitions [n, t].

    The domain is an argument of the compiled program, so all rules of one game share it.
    """

    @jax.jit
    def program(domain, states, actions):
        def step(state, action):
            following = domain.world(state, action)
            return following.state, following

        return jax.vmap(lambda state, actions: jax.lax.scan(step, state, actions)[1])(states, actions)

    def play(domain, states, actions):
        transitions = program(domain, states, actions)
        features = jax.jit(jax.vmap(jax.vmap(domain.features)))(transitions.state)
        return features, transitions.reward, transitions.terminal

    return play


@pytest.fixture
def without_pictures(monkeypatch):
    """Runs of the lab draw no episodes and no figures, which take longer than a tiny run; others test them."""
    monkeypatch.setattr("uamcts.lab.run.reproduce.draw_typical", lambda *_: None)
    monkeypatch.setattr("uamcts.lab.report.sections._figures", lambda *_: ([], []))


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window; tests that need it are skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no chromium: selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium: install chromium and chromium-driver to try the page in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield running
    running.quit()
