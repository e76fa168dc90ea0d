"""Ends calls that never return: with another value of a number, a loop of a simulator may run forever.

While a call runs, another thread checks it from time to time. Once the call has used up its time, that thread raises an
exception in it. Nothing is counted or traced, so a call that returns in time costs only a fraction of a microsecond
more. The limit applies to the CPU time of the calling thread, where the system reports it, so a busy machine does no
harm.

The interpreter raises such an exception only between two instructions of Python code, so a loop inside a compiled
function is not ended. Without CPython, no call is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

THREAD = "uamcts-watch"
"""The name of the threads that check calls."""
INTERVAL, IDLE = 0.04, 1.0
"""Seconds between two checks, and seconds without a call after which the thread ends."""
WAITS = 5.0
"""How many times its limit a call may take in wall-clock time, as it may sleep or the machine may be busy."""
SETTLED = 4
"""Exceptions that may still be on their way after a call: one, and as many as it takes to be sure."""


NEVER = math.inf
_now = time.perf_counter


class Interrupt(BaseException):
    """Ends a call from outside. Code that handles errors seldom handles this."""


PASSED_ON = (KeyboardInterrupt, GeneratorExit, Interrupt)
"""Exceptions in a step that do not come from the simulator."""


class _Look(NamedTuple):
    """When a call was first seen, and the CPU time of its thread by then."""

    since: float
    used: float


class Watch:
    """Ends calls that take too long, one call at a time.

    Args:
        limit: Seconds that a call of a guarded function may take.
        error: The exception to raise in place of a call that was ended.
    """

    def __init__(self, limit: float = math.inf, error: type[Exception] = TimeoutError):
        self.limit, self.error = limit, error
        self._present: float | None = None
        """The limit of the present call, if it differs."""
        self._since = NEVER
        """When the present call began; infinite between two calls."""
        self._caller, self._process = 0, 0
        self._clock: int | None = None
        self._looks = self._fired = False
        """Whether the other thread is ending a call, and whether it has ended the present one."""
        self._awake, self._threads = False, 0

    def __reduce__(self) -> tuple[type[Watch], tuple[float, type[Exception]]]:
        return Watch, (self.limit, self.error)

    def attend(self) -> None:
        """Must be called by a thread before it calls guarded functions."""
        if self._caller != threading.get_ident() or self._process != os.getpid():
            self._awake = self._awake and self._process == os.getpid()  # a fork has no threads
            self._caller, self._process, self._clock = threading.get_ident(), os.getpid(), _clock_of_thread()

    def call(self, limit: float, function: Callable[[], Any]) -> Any:
        """What a function returns; raises `error` if it takes more than `limit` seconds."""
        if self._caller != threading.get_ident():
            self.attend()
        self._present = limit
        try:
            return Guarded(self, function)()
        finally:
            self._present = None

    def _wake(self) -> None:
        self._awake, self._threads = True, self._threads + 1
        with contextlib.suppress(RuntimeError):  # without threads, as in a browser, nothing is ended
            threading.Thread(target=self._stand_by, args=(self._threads,), name=THREAD, daemon=True).start()

    def _settle(self) -> None:
        """Raises an `Interrupt` if the call that is over was ended, whatever it has returned or raised."""
        self._clear()
        if self._fired:
            raise Interrupt

    def _clear(self) -> None:
        """Waits until no exception is on its way."""
        for _ in range(SETTLED):
            try:
                self._since = NEVER
                while self._looks:
                    time.sleep(1e-4)
                _raise_in(self._caller, None)
                return
            except Interrupt:
                self._fired = True

    def _overtime(self) -> Exception:
        limit = self.limit if self._present is None else self._present
        return self.error(f"a call took longer than {limit:.3g} s, or never ends")

    def _stand_by(self, thread: int) -> None:
        """Checks calls from time to time, until there was none for a while."""
        look, idle = _Look(NEVER, 0.0), 0.0
        while True:
            time.sleep(INTERVAL)
            if thread != self._threads:
                return
            since = self._since
            idle = idle + INTERVAL if since == NEVER else 0.0
            if idle > IDLE:
                self._awake = False
                if self._since == NEVER:
                    return
                self._awake, idle = True, 0.0
            elif since != look.since:
                look = _Look(since, self._used())
            elif since != NEVER:
                limit = self.limit if self._present is None else self._present
                if self._used() - look.used > limit or _now() - since > WAITS * limit:
                    self._end(since)

    def _end(self, since: float) -> None:
        """Raises an exception in the call that began then, if it still runs."""
        self._looks = True  # before the check: a call that has just ended looks at it afterwards
        if self._since == since:
            self._fired = True
            _raise_in(self._caller, Interrupt)
        self._looks = False

    def _used(self) -> float:
        """The CPU time of the calling thread, in seconds."""
        try:
            return time.perf_counter() if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # that thread has ended
            return math.nan


class Guarded:
    """A function whose calls are ended if they take too long. After that, it is not called again.

    Args:
        watch: Checks the calls.
        function: The function.
        ended: Called after a call was ended.
    """

    __slots__ = ("ended", "function", "watch")

    def __init__(self, watch: Watch, function: Callable[..., Any], ended: Callable[[], None] | None = None):
        self.watch, self.function, self.ended = watch, function, ended

    def __call__(self, *given: object) -> Any:
        watch = self.watch
        if watch._since != NEVER:  # the call is part of one that is watched
            return self.function(*given)
        watch._fired, watch._since = False, _now()
        try:
            try:
                if not watch._awake:  # after `_since` is set: a thread that is about to end looks at it once more
                    watch._wake()
                return self.function(*given)
            finally:
                watch._since = NEVER  # first: from here on, nothing is raised
                if watch._looks or watch._fired:
                    watch._settle()
        except Interrupt:
            watch._clear()
        self.function = self._refuse
        if self.ended is not None:
            self.ended()
        raise watch._overtime()

    @property
    def __self__(self) -> Any:
        """What the function belongs to, as that of any method."""
        return self.function.__self__  # type: ignore[attr-defined]

    def _refuse(self, *given: object) -> Any:
        raise self.watch._overtime()


def attempt(function: Callable[..., Any], *given: object, otherwise: object = None) -> Any:
    """What a function of the user returns, or `otherwise` if it fails or exits."""
    try:
        return function(*given)
    except PASSED_ON:
        raise
    except BaseException:
        return otherwise


def _clock_of_thread() -> int | None:
    """The clock of this thread's CPU time; None where the system has none that other threads may read."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return None if clock is None else int(clock(threading.get_ident()))


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Makes a thread raise an exception at its next instruction; None cancels one that is not raised yet."""
    api = getattr(ctypes, "pythonapi", None)
    if api is not None:
        raised = ctypes.py_object() if kind is None else ctypes.py_object(kind)
        api.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
