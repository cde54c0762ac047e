"""Cached calls: generated code recognizes the arguments of recent calls and launches directly.

A function, or one compiled specialization, gets a generated ``__call__`` for its latest call
(:mod:`cute_dialect.runtime.fast_call`).  A call that this code does not recognize is compared with a few earlier calls,
and takes the slow path last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from keyword import iskeyword
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.lang.calls.arguments import ArraySpec, Spec, StaticSpec, StreamSpec, TreeSpec
from cute_dialect.lang.calls.cache.dependencies import Entry, Watched, can_change, never_changes, unchanged_since
from cute_dialect.lang.calls.cache.keys import static_key
from cute_dialect.lang.calls.runtime_tensor import RuntimeTensor
from cute_dialect.runtime.fast_call import MISSING, Constants, Opening, QuickCall, Watch

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled

_RECENT = 4


class _Opened:
    """The arguments of a call, split into the parts that generated code compares."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.leaves: list[Any] = []
        self.passed: list[Any] = []
        self.conditions: list[str] = []
        self.values: list[object] = []
        self.same: set[int] = set()
        self.equal: set[int] = set()
        self.stream = -1
        self.state: list[tuple[StaticSpec, object]] = []
        """Constants with mutable contents."""

    def _known(self, value: object) -> str:
        self.values.append(value)
        return f"q{len(self.values) - 1}"

    def add(self, spec: Spec, value: Any, at: str) -> bool:
        """Add a value found at expression ``at``. Return False if generated code cannot compare it."""
        n = len(self.leaves)
        if isinstance(spec, TreeSpec):
            return self._container(spec, value, at)
        if isinstance(spec, StreamSpec):
            if self.stream >= 0:
                return False
            self.stream = n
        elif isinstance(spec, StaticSpec):
            if type(value) in (int, str, bytes):
                self.equal.add(n)
            else:
                self.same.add(n)
                if not never_changes(value):
                    self.state.append((spec, value))
        elif isinstance(spec, ArraySpec) and type(value) is RuntimeTensor:
            return self._wrapped(value, at)
        elif spec.direct:
            self.passed.append(value)
        else:
            return False
        self._leaf(value, at)
        return True

    def _leaf(self, value: object, at: str) -> None:
        self.leaves.append(value)
        self.parts.append(at)

    def _wrapped(self, tensor: RuntimeTensor, at: str) -> bool:
        """Add the array of a tensor, whose marks and types must be unchanged."""
        found: list[object] = []
        ArraySpec(tensor.type, tensor.dtype).leaves(tensor, found, at)
        if found[0] is not tensor.array:  # Its elements are viewed as another type.
            return False
        dtype, alignment, seen_as, extents, strides = tensor.held
        kind, known = self._known(RuntimeTensor), self._known(dtype)
        self.conditions += [
            f"type({at}) is {kind}",
            f"{at}.dtype is {known}",
            f"{at}.alignment == {self._known(alignment)}",
            f"{at}.seen_as is {self._known(seen_as)}",
            f"{at}._extents == {self._known(list(cast('list[Any]', extents)))}",
            f"{at}._strides == {self._known(list(cast('list[Any]', strides)))}",
        ]
        self.passed.append(tensor.array)
        self._leaf(tensor.array, f"{at}.array")
        return True

    def _container(self, spec: TreeSpec, value: Any, at: str) -> bool:
        kind = spec.kind.type
        if hasattr(kind, "__cute_flatten__") or type(value) is not kind:
            return False
        names, parts = spec.kind.take(value)
        if names != spec.names:
            return False
        self.conditions.append(f"type({at}) is {self._known(kind)}")
        if isinstance(value, tuple | list):
            self.conditions.append(f"len({at}) == {len(parts)}")
            places = [f"{at}[{i}]" for i in range(len(parts))]
        else:
            space = at if isinstance(value, dict) else f"{at}.__dict__"
            # Equal keys in the same order imply equal entries.
            self.conditions.append(f"tuple({space}) == {self._known(names)}")
            places = [f"{space}[{self._known(name)}]" for name in names]
        return all(self.add(s, x, place) for s, x, place in zip(spec.parts, parts, places, strict=True))

    def unchanged(self, watched: Watched | None) -> tuple[Callable[[], bool] | None, bool]:
        """Return a function that checks the mutable parts (None if there are none), and True if such a check is
        possible.
        """
        values = [value for _, value in self.state]
        # The recorded state must still hold before identities can stand for it.
        if watched is not None and watched.has_changed():
            return None, False
        if watched is not None and watched.same is None and watched.contents:
            watched.same = unchanged_since([v for v, _ in watched.contents], others=lambda x: not can_change(x))
        others = None if watched is None else watched.same
        own = unchanged_since(values) if values else None
        if (values and own is None) or (watched is not None and watched.contents and others is None):
            return None, False
        if any(static_key(value) != spec.key for spec, value in self.state):
            return None, False
        if own is None or others is None:
            return own or others, True
        return (lambda: own() and others()), True


def constants_of(
    specs: Mapping[str, Spec], args: tuple[Any, ...], watched: Watched | None = None
) -> tuple[Constants, tuple[Any, ...], tuple[Any, ...]] | None:
    """Return the comparisons for generated code, the argument leaves, and the leaves passed to the launch.

    The result is None if generated code cannot compare the arguments.  ``watched`` holds the other dependencies of the
    specialization.

    >>> from cute_dialect.lang.calls.arguments import spec_of
    >>> specs = {"mode": spec_of("fast", None, "mode"), "n": spec_of((3, 4), None, "n")}
    >>> constants, given, passed = constants_of(specs, ("fast", (3, 4)))
    >>> sorted(constants.equal), constants.opening.parts, given, passed
    ([0], ('b0', 'b1[0]', 'b1[1]'), ('fast', 3, 4), (3, 4))
    """
    opened = _Opened()
    for i, (arg, spec) in enumerate(zip(args, specs.values())):
        if not opened.add(spec, arg, f"b{i}"):
            return None
    if any(not isinstance(s, StaticSpec) for s in list(specs.values())[len(args) :]):
        return None
    state, can_tell = opened.unchanged(watched)
    if not can_tell:
        return None
    opening = None
    if opened.parts != [f"b{i}" for i in range(len(args))]:
        opening = Opening(len(args), tuple(opened.conditions), tuple(opened.parts), tuple(opened.values))
    entries = () if watched is None else tuple(map(_watch, watched.entries))
    constants = Constants(frozenset(opened.same), frozenset(opened.equal), opened.stream, entries, state, opening)
    return constants, tuple(opened.leaves), tuple(opened.passed)


def _watch(entry: Entry) -> Watch:
    """Return the comparison of an entry in generated code. Attributes compare twice as fast as dictionary entries."""
    owner, name, value = entry
    if not isinstance(owner, dict):
        return Watch(owner, name, "", value)
    module = sys.modules.get(cast("dict[str, Any]", owner).get("__name__", ""))
    if type(module) is ModuleType and vars(module) is owner and _is_plain(name):
        return Watch(module, name, "", value)
    return Watch(cast("dict[str, Any]", owner), "", name, value)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not iskeyword(name)


def learn(owner: Any, kind: Compiled, args: tuple[Any, ...], *, watch: bool) -> None:
    """Make ``owner`` (a function or a specialization) recognize calls like the one just launched with ``args``."""
    outcome = kind.outcome
    if outcome.result is not None or outcome.outputs is not None or any(outcome.texts):
        return
    found = constants_of(kind.specs, args, kind.watched if watch else None)
    if found is None:
        return
    constants, given, passed = found
    quick = kind.kernel(cpu=False).quick(passed, given, owner.other, constants)
    if quick is None:
        return
    recent: tuple[QuickCall, ...] = owner.__dict__.get("_recent", ())
    owner.__dict__["_recent"] = (quick, *recent[: _RECENT - 1])
    owner.__call__ = quick.call


def other_call(owner: Any, args: tuple[object, ...], stream: object, options: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the arguments of a call that no recent call matches, or None if one matched and was launched."""
    args = tuple([a for a in args if a is not MISSING])
    if not options:
        for quick in owner.__dict__.get("_recent", ())[1:]:
            if quick.again(args, stream):
                return None
    return args
