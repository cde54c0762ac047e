"""Cache of recorded calls, which are replayed without argument checks or kernel choice.

A guard from torch recognizes a call like the previous one; other calls are looked up by a key.  The recording
(:mod:`cute_dialect.op.execute.recording`) is replayed at the addresses of the new arguments.

The key has everything that the checks and the kernel choice depend on, except addresses:  Python types, shapes,
strides, element types and devices of the tensors, ``torch.autocast``, and the other arguments.  The low bits of
addresses and the sets of tensors that share memory must match as well; otherwise the call is checked and computed as a
new one.

When the C++ extension has been loaded (:mod:`cute_dialect.runtime.native`), all recordings are forgotten, and the next
calls are recorded again for C++.  Another thread may be recording or looking up a call meanwhile, so each cached call
names the extension for which it was recorded.  If a look-up finds a call of another extension, it clears the cache.

Costs on one core of a shared virtual machine with torch 2.13, in ns: the guard 270, the key and its lookup 1000,
``empty_strided`` 1000 (``empty`` 1700, the function that :mod:`cute_dialect.op.execute.replay` calls 470),
``data_ptr`` 90.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakSet

from cute_dialect.op.arrays.dtypes import tf32_allowed
from cute_dialect.op.arrays.library import is_autocast
from cute_dialect.op.execute.launcher import CURRENT
from cute_dialect.op.execute.recording import is_eager, is_transformed, recorded
from cute_dialect.runtime import native
from cute_dialect.runtime.fast_call import guard_of

_R = TypeVar("_R")

_LIMIT = 1024
"""Maximum number of cached specializations."""
_RECENT = 6
"""Number of calls whose guards are tried before a key is computed."""
_RUNS = 4
"""Maximum number of recordings per specialization, one per pattern of address bits and shared memory."""


def number(x: float) -> tuple[object, object]:
    """Return the cache key of a number: its type, and its value with the sign of zeros.

    >>> number(0.0) == number(-0.0), number(1) == number(1.0), number(2.5) == number(2.5)
    (False, False, True)
    """
    return type(x), x or repr(x)


def key_and_arrays(how: tuple[object, ...], given: Iterable[Any]) -> tuple[tuple[object, ...], list[Any]]:
    """Return the cache key of a call, and its arrays.

    Args:
        how: arguments that are part of the key.
        given: arrays and numbers, None for one that was not passed; always the same ones for equal ``how``.
    """
    key, arrays = [*how], list[Any]()
    for x in given:
        if type(x) is float:
            key.append(x or repr(x))
        elif x is None or isinstance(x, int | float):
            key.append((type(x), x))
        else:
            key.append("array")
            arrays.append(x)
    return tuple(key), arrays


class CachedCall(NamedTuple):
    """A cached specialization of a call."""

    how: object
    """All arguments but the tensors."""
    guard: Callable[..., bool]
    """Returns True if tensors have the recorded types, shapes, strides and device, and need gradients as recorded."""
    runs: tuple[Callable[..., Any], ...]
    """Replay the call; one for each pattern of address bits and shared memory.  Empty if it cannot be replayed.

    Each returns None, or raises AddressMismatch, for another pattern.
    """
    allowed: bool | None
    """Whether torch allowed TF32 when the call was recorded, if its first tensor is f32."""
    gradients: bool | None = None
    """Whether gradients were enabled, if a tensor requires them.  Not all releases of torch guard this."""
    direct: Any = None
    """:attr:`KnownCalls.again` while this is the last call: generated code, which tries the first of ``runs``.

    With the C++ extension it is an entry of :attr:`KnownCalls.again`, which tries several calls.
    """
    extension: Any = None
    """The C++ extension for which the call was recorded; None for Python."""


class AddressMismatch(Exception):
    """The low bits or the overlap of addresses differ from those of the recorded call."""


def _never(*tensors: object) -> bool:
    """Return False: this guard never matches, so the call is looked up by its key."""
    return False


_CACHES: WeakSet[KnownCalls] = WeakSet()
_CACHES_LOCK = Lock()
"""Held while caches are added or listed, because a set must not change while it is listed."""


def forget_calls() -> None:
    """Remove the calls of all caches, so that later calls choose kernels and are recorded again."""
    with _CACHES_LOCK:
        caches = list(_CACHES)
    for calls in caches:
        calls.clear()


native.when_loaded(forget_calls)


class KnownCalls:
    """Recorded calls of a function::

        c = calls.call(how, (a, b), lambda: …)

    A function whose arguments take time to check first tries ``calls.again(how, a, b)``, which returns None if there
    is no such call, and calls :meth:`recorded` after its checks.

    ``how`` is the key of the arguments that are not tensors (numbers as returned by :func:`number`).  It must determine
    the number of tensors, because a guard raises TypeError for another number.

    Args:
        tf32: the settings of TF32 affect the call if its first tensor is f32.
        gradients: the result may need gradients.  Otherwise it does not matter whether tensors require them.
    """

    def __init__(self, tf32: bool = True, gradients: bool = True) -> None:
        with _CACHES_LOCK:
            _CACHES.add(self)
        self._tf32, self._gradients = tf32, gradients
        self._found: dict[object, CachedCall] = {}
        self._failed: set[object] = set()  # keys of calls whose first recording failed
        self._recent: tuple[CachedCall, ...] = ()
        self._grad: Callable[[], bool] = _never
        self.again: Callable[..., Any] = self._again
        """Replay a recorded call: ``again(how, *tensors)``.  Its result has gradients if an argument requires them.

        Return None, and do nothing, if there is none.
        """
        self.is_traced: Callable[[], bool] = is_traced
        """Returns True while ``torch.compile`` traces a call; such a call is not cached."""

    def __len__(self) -> int:
        return sum([bool(x.runs) for x in list(self._found.values())])

    def clear(self) -> None:
        """Remove all calls."""
        self._found.clear()
        self._failed.clear()
        self.again, self._recent = self._again, ()

    def _again(self, how: object, *tensors: Any) -> Any:
        """Replay a call other than the last one, or a recording other than its first."""
        if not self._found:
            return None
        try:
            known = self._recent_call(how, tensors) or self._found_call(how, tensors)
        except (AttributeError, TypeError, RuntimeError):  # not strided tensors: computing the call reports it
            return None
        if known is None:
            return None
        if known.extension is not native.loaded():
            self.clear()
            return None
        self._use(known)
        if (known.allowed is not None and known.allowed is not tf32_allowed()) or CURRENT.recording is not None:
            return None
        for run in known.runs:
            try:
                done = run(*tensors)
            except AddressMismatch:
                continue
            if done is not None:
                return done
        return None

    def _use(self, known: CachedCall) -> None:
        """Try a call first from now on."""
        extension = known.extension
        if extension is None or known.direct is None:
            self.again = known.direct or self._again
            if native.loaded() is not extension:  # The thread that has just loaded it may have run clear() before.
                self.again = self._again
            return
        again: Any = self.again
        if type(again) is not extension.Calls:
            self.again = again = extension.Calls(self._again)
        again.add(known.direct)

    def _recent_call(self, how: object, tensors: Sequence[Any]) -> CachedCall | None:
        """Return one of the last calls that were looked up, if its guard holds: faster than a key."""
        for known in self._recent:
            same = known.how == how and known.guard(*tensors)
            if same and (known.gradients is None or known.gradients is self._grad()):
                return known
        return None

    def _found_call(self, how: object, tensors: Sequence[Any]) -> CachedCall | None:
        """Look a call up by its key."""
        learns = self._learns(tensors)
        if learns and not is_eager(tensors):
            return None
        found = self._found.get((how, key_of(tensors), learns))
        if found is None:
            found = self._similar_call(how, tensors, learns)
        if found is None or not found.runs:
            return None
        _ = [t.data_ptr() for t in tensors]  # raises for the tensors of torch.vmap, which have no address
        if found.guard is not _never:
            self._recent = (found, *self._recent[: _RECENT - 1])
        return found

    def _similar_call(self, how: object, tensors: Sequence[Any], learns: bool) -> CachedCall | None:
        """Return a call that also replays these tensors, and give it a guard for them.

        It was recorded with separate tensors where one is passed twice, or, if no result needs gradients (``learns``
        is False), with tensors that require none.
        """
        for gradients in (True, False) if not learns else (True,):
            for places in (True, False):
                found = self._found.get((how, key_of(tensors, gradients, places), learns))
                if found is not None and found.runs:
                    needed = self._gradients and any([t.requires_grad for t in tensors])
                    found = found._replace(guard=_guard_of(tensors), gradients=learns if needed else None)
                    self._found[how, key_of(tensors), learns] = found = self._with_direct(found, tensors)
                    return found
        return None

    def _learns(self, tensors: Sequence[Any]) -> bool:
        """Return True if the result needs gradients."""
        return self._gradients and self._grad() and any([t.requires_grad for t in tensors])

    def call(self, how: object, tensors: Sequence[Any], compute: Callable[[], _R]) -> _R:
        """Replay a call, or compute and cache it."""
        if self.is_traced():
            return compute()
        done = self.again(how, *tensors)
        return self.recorded(how, tensors, compute) if done is None else done

    def recorded(self, how: object, tensors: Sequence[Any], compute: Callable[[], _R], views: bool = False) -> _R:
        """Compute a call and cache how it was done, if all its tensors are plain torch tensors.

        Args:
            views: results may be views of arguments, or None.
        """
        if CURRENT.recording is not None or not self._is_plain(how, tensors) or self._learns(tensors):
            return compute()
        key = (how, key_of(tensors), False)
        if not self._may_add(key):
            return compute()
        with recorded(tensors) as recording:
            result = compute()
        if recording is not None:
            extension = _extension_for(tensors)
            self._add(key, how, tensors, recording.again(result, views), extension)
        return result

    def computed(self, how: object, tensors: Sequence[Any], compute: Callable[[], _R]) -> _R:
        """Compute a call, with gradients if an argument requires them, and cache it."""
        if CURRENT.recording is not None or not self._is_plain(how, tensors):
            return compute()
        return (self.differentiable if self._learns(tensors) else self.recorded)(how, tensors, compute)

    def differentiable(self, how: object, tensors: Sequence[Any], compute: Callable[[], _R]) -> _R:
        """Compute a call whose result needs gradients, and cache it with its backward pass.

        A call is cached if it adds one node to the autograd graph, which was made by
        :func:`cute_dialect.op.torch.autograd.node_of` and takes the tensors themselves.
        """
        if CURRENT.recording is not None or not self._is_plain(how, tensors):
            return compute()
        key = (how, key_of(tensors), True)
        if not self._may_add(key) or not is_eager(tensors):
            return compute()
        with recorded(tensors) as recording:
            result = compute()
        run, extension = None, _extension_for(tensors)
        if recording is not None and len(recording.nodes) == 1 and not recording.failed:
            run = recording.nodes[0].replayed(recording, tensors, result)
        self._add(key, how, tensors, run, extension)
        return result

    def _may_add(self, key: object) -> bool:
        """Return False if a call cannot be replayed, or has the maximum number of recordings."""
        old = self._found.get(key)
        return old is None or len(old.runs) not in (0, _RUNS)

    def _add(
        self, key: object, how: object, tensors: Sequence[Any], run: Callable[..., Any] | None, extension: Any
    ) -> None:
        """Cache a recording, or that the call cannot be replayed (``run`` is None).

        The first recording of a call may fail because of work that is done once, so a call is recorded twice.

        Args:
            extension: the C++ extension before ``run`` was made.  If another thread has loaded it since, a part of
                ``run`` may be in Python.
        """
        import torch

        if len(self._found) >= _LIMIT or len(self._failed) >= _LIMIT:
            self.clear()
        if run is None and key not in self._failed:
            self._failed.add(key)
            return
        allowed = tf32_allowed() if self._tf32 and tensors[0].dtype == torch.float32 else None
        old = self._found.get(key)
        runs = () if run is None else (run,)
        if old is not None and old.allowed is allowed and old.extension is extension:
            runs += old.runs[: _RUNS - 1]
        gradients = self._grad() if self._gradients and any([t.requires_grad for t in tensors]) else None
        known = CachedCall(how, _guard_of(tensors), runs, allowed, gradients, extension=extension)
        self._found[key] = self._with_direct(known, tensors)
        self.again, self._recent = self._again, ()

    def _with_direct(self, known: CachedCall, tensors: Sequence[Any]) -> CachedCall:
        """Add the code that replays a call of these tensors while it is the last one."""
        if known.guard is _never or not known.runs:
            return known._replace(direct=None)
        extension = known.extension
        if extension is not None:
            settings = known.gradients, known.allowed, tf32_allowed, CURRENT
            call = extension.Call(known.how, tensors, known.runs[0], *settings, AddressMismatch)
            return known._replace(direct=call)
        make = _direct_maker(len(tensors), known.gradients, known.allowed)
        settings = self._grad, tf32_allowed, CURRENT
        direct = make(known.how, known.guard, known.runs[0], *settings, AddressMismatch, self._again)
        return known._replace(direct=direct)

    def _is_plain(self, how: object, tensors: Sequence[Any]) -> bool:
        """Return True if the tensors are plain and the other arguments cannot change."""
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        self._grad, self.is_traced = torch.is_grad_enabled, torch.compiler.is_dynamo_compiling
        plain = (torch.Tensor, torch.nn.Parameter)
        if any([type(t) not in plain or t.layout is not torch.strided for t in tensors]):
            return False
        if is_transformed():
            return False
        try:
            hash(how)
        except TypeError:  # a list may change
            return False
        return True


def _extension_for(tensors: Sequence[Any]) -> Any:
    """Return the C++ extension for which a call of tensors is recorded, or None for Python.

    The first call on a GPU loads it, or starts to compile it.
    """
    if tensors[0].is_cuda:
        native.prepare()
    return native.loaded()


_MISSING = object()
"""A tensor that was not passed."""


@lru_cache(maxsize=256)
def _direct_maker(tensors: int, gradients: bool | None, allowed: bool | None) -> Callable[..., Callable[..., Any]]:
    """Return the factory of :attr:`CachedCall.direct`, a function with one parameter for each tensor.

    Args:
        tensors: number of tensors.
        gradients, allowed: as in :class:`CachedCall`.
    """
    names = "".join(f"a{i}, " for i in range(tensors))
    conditions = [f"guard({names})"]
    conditions += [] if gradients is None else [f"grad() is {gradients}"]
    conditions += [] if allowed is None else [f"tf32() is {allowed}"]
    lines = [
        "def make(known, guard, run, grad, tf32, current, mismatch, otherwise):",
        f"    def again(how, {names.replace(', ', '=missing, ')}*more):",
        f"        if how == known and not more and {' and '.join(conditions)} and current.recording is None:",
        "            try:",
        f"                done = run({names})",
        "                if done is not None:",
        "                    return done",
        "            except mismatch:",
        "                pass",
        f"        return otherwise(how, *[x for x in ({names}) if x is not missing], *more)",
        "    return again",
    ]
    space: dict[str, Any] = {"missing": _MISSING}
    exec(compile("\n".join(lines) + "\n", "<a cached call>", "exec"), space)
    return cast("Callable[..., Callable[..., Any]]", space["make"])


def _guard_of(tensors: Sequence[Any]) -> Callable[..., bool]:
    """Return the guard of tensors.  torch's guard rejects a tensor that is passed twice, so it gets each one once."""
    first = _first_places(tensors)
    places = tuple(sorted(set(first)))
    check = guard_of([tensors[i] for i in places]) or _never
    if len(places) == len(tensors) or check is _never:
        return check
    same = [(i, j) for i, j in zip(first, range(len(first))) if i != j]

    def guard(*given: Any) -> bool:
        for i, j in same:
            if given[i] is not given[j]:
                return False
        return check(*[given[i] for i in places])

    return guard


def _first_places(tensors: Sequence[Any]) -> list[int]:
    """Return for each tensor the index at which it is passed first."""
    first: dict[int, int] = {}
    return [first.setdefault(id(t), i) for i, t in enumerate(tensors)]


def is_traced() -> bool:
    """Return True while ``torch.compile`` traces this call."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def key_of(tensors: Sequence[Any], gradients: bool = True, places: bool = True) -> tuple[object, ...]:
    """Return the cache key of tensors, without their addresses.

    Args:
        gradients: the key contains whether the tensors require gradients.
        places: the key contains which tensors are passed several times; their guard differs.
    """
    key: tuple[object, ...] = tuple(
        [
            (type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device(), gradients and t.requires_grad)
            for t in tensors
        ]
    )
    if tensors and is_autocast(tensors[0]):
        key = ("autocast", *key)
    repeated = places and len(set(map(id, tensors))) < len(tensors)
    return (*key, *_first_places(tensors)) if repeated else key
