"""Ends calls that never return: with another value of a number, a loop of a simulator may go on for ever.

While a call runs, a thread looks at it now and then. Once the call has used up its time, the thread raises an exception
in it. Nothing is counted or traced, so a call that returns in time costs a fraction of a microsecond more. What counts
is the processor time of the calling thread, where the system tells it: a busy machine does no harm.

The interpreter raises such an exception between two steps of Python code: a loop inside a compiled function is not
ended. Without CPython no call is.
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
"""The name of the threads that look."""
INTERVAL, IDLE = 0.04, 1.0
"""Seconds between two looks, and those without a call after which the thread ends."""
WAITS = 5.0
"""How many times its limit a call may take in all, if it sleeps or the machine has other work."""
SETTLED = 4
"""Exceptions that may still be on their way after a call: one, and as many as it takes to be sure."""


NEVER = math.inf
_now = time.perf_counter


class Interrupt(BaseException):
    """Ends a call from outside. Code that handles errors seldom handles this."""


PASSED_ON = (KeyboardInterrupt, GeneratorExit, Interrupt)
"""What a step may raise that is no answer of the simulator."""


class _Look(NamedTuple):
    """When a call was seen first, and the processor time of its thread by then."""

    since: float
    used: float


class Watch:
    """Ends calls that take too long, one call at a time.

    Args:
        limit: Seconds that a call of a guarded function may take.
        error: What is raised where one was ended.
    """

    def __init__(self, limit: float = math.inf, error: type[Exception] = TimeoutError):
        self.limit, self.error = limit, error
        self._present: float | None = None
        """The limit of the present call, if it is another one."""
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
        """Is called by a thread before it calls guarded functions."""
        if self._caller != threading.get_ident() or self._process != os.getpid():
            self._awake = self._awake and self._process == os.getpid()  # a fork has no threads
            self._caller, self._process, self._clock = threading.get_ident(), os.getpid(), _clock_of_thread()

    def call(self, limit: float, function: Callable[[], Any]) -> Any:
        """What a function returns; an error if it takes more than so many seconds."""
        if self._caller != threading.get_ident():
            self.attend()
        self._present = limit
        try:
            return Guarded(self, function)()
        finally:
            self._present = None

    def _wake(self) -> None:
        self._awake, self._threads = True, self._threads + 1
        with contextlib.suppress(RuntimeError):  # where there are no threads, as in a browser, nothing is ended
            threading.Thread(target=self._stand_by, args=(self._threads,), name=THREAD, daemon=True).start()

    def _settle(self) -> None:
        """Raises an `Interrupt` if the call that is over was ended, whatever it has returned or raised."""
        self._clear()
        if self._fired:
            raise Interrupt

    def _clear(self) -> None:
        """Waits until nothing is on its way any more."""
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
        """Looks now and then, until there was no call for a while."""
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
        self._looks = True  # in this order: whoever ends a call looks at this afterwards
        if self._since == since:
            self._fired = True
            _raise_in(self._caller, Interrupt)
        self._looks = False

    def _used(self) -> float:
        """The time of the calling thread, in seconds."""
        try:
            return time.perf_counter() if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # that thread has ended
            return math.nan


class Guarded:
    """A function whose calls are ended if they take too long. After one that was ended, it is not called again.

    Args:
        watch: What looks at the calls.
        function: The function.
        ended: Is called when a call was ended.
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
                if not watch._awake:  # in this order: a thread that ends looks at the time once more
                    watch._wake()
                return self.function(*given)
            finally:
                watch._since = NEVER  # first of all: from now on, nothing is raised any more
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
    """What a function of the user returns, or something else if it fails: some programs exit instead."""
    try:
        return function(*given)
    except PASSED_ON:
        raise
    except BaseException:
        return otherwise


def _clock_of_thread() -> int | None:
    """The clock of this thread's processor time; None where the system has none that others may read."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return None if clock is None else int(clock(threading.get_ident()))


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Has a thread raise an exception at its next step; None takes back what it has not raised yet."""
    api = getattr(ctypes, "pythonapi", None)
    if api is not None:
        raised = ctypes.py_object() if kind is None else ctypes.py_object(kind)
        api.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
