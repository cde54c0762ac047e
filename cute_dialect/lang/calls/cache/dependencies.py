"""The objects that a specialization depends on, apart from its arguments: checked before each call.

Each of the user's functions that the trace went through adds its code and defaults.  It also adds the globals and the
variables of enclosing functions that it reads.  All are compared by identity.  Lists, dicts, small arrays, and the
user's classes and objects among them are compared by what they hold.  So an edited and reloaded helper, a method that
was replaced, and ``helper.__code__ = …`` all make the next call trace again.

Every cached call runs a faster check, that the same objects still hold the same contents, by identity only:

>>> config = {"tile": (16, 8)}
>>> same = unchanged_since([config])
>>> same(), config.update(tile=(8, 8)), same()
(True, None, False)
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from importlib.util import resolve_name
from itertools import islice
from operator import is_
from typing import Any, NamedTuple, cast

from cute_dialect.lang.calls.cache.keys import Same, fields_of
from cute_dialect.lang.calls.traced import BoundMethod, plain
from cute_dialect.lang.rewrite.source import (
    Read,
    codes_in,
    is_users_class,
    is_users_function,
    is_users_module,
    reads_of,
)
from cute_dialect.lang.values.dtypes import Numeric


class Entry(NamedTuple):
    """An object that a trace read by name, compared by identity before each call.

    ``owner`` is a module's dictionary, or a cell or function of which ``name`` is an attribute.
    """

    owner: Any
    name: str
    value: object

    def now(self) -> object:
        """Return the current object of that name."""
        if isinstance(self.owner, dict):
            return cast("dict[str, object]", self.owner).get(self.name, _GONE)
        try:
            return getattr(self.owner, self.name)
        except (AttributeError, ValueError):  # The cell is empty.
            return _GONE


class Watched:
    """The objects that a specialization was traced from, apart from its arguments.

    Args:
        entries: globals, variables of enclosing functions, and the code and defaults of functions, by identity.
        contents: lists, dicts, small arrays, classes and objects with what they held.
    """

    __slots__ = ("contents", "entries", "same")

    def __init__(
        self, entries: tuple[Entry, ...] = (), contents: tuple[tuple[object, Hashable], ...] = (),
        same: Callable[[], bool] | None = None,
    ):  # fmt: skip
        self.entries = entries
        self.contents = contents
        self.same = same
        """Returns True if all contents hold the very objects they held: a fast form of the comparison."""

    def has_changed(self) -> bool:
        """Return True if one of the objects was replaced or holds something else."""
        for entry in self.entries:
            owner, name, value = entry
            now = owner.get(name, _GONE) if type(owner) is dict else entry.now()
            if now is not value:
                return True
        if self.same is not None and self.same():
            return False
        return any(_content(value) != held for value, held in self.contents)

    def after_trace(self, more: Watched) -> Watched:
        """Return the watch list after the trace: this one, and ``more`` that only the trace found.

        Values that the trace itself changed are results, not dependencies.
        """
        entries = {(id(e.owner), e.name): e._replace(value=e.now()) for e in (*self.entries, *more.entries)}
        contents = {id(value): (value, held) for value, held in more.contents}
        contents.update({id(value): (value, held) for value, held in self.contents})
        kept = [(value, held) for value, held in contents.values() if _content(value) == held]
        return Watched(tuple(entries.values()), tuple(kept))


_GONE = object()
_OWN = __name__.partition(".")[0]
_CODE, _DEFAULTS, _KEYWORD_DEFAULTS = "__code__", "__defaults__", "__kwdefaults__"


def watched_by(*roots: object, objects: bool = False) -> Watched:
    """Return the objects that a trace of functions may read: ``roots`` are these functions and constant arguments.

    The walk goes through the user's functions that are named, held in containers and objects, or methods of the
    user's classes.  Functions of installed packages and of this one are not inspected. For those among ``roots`` the
    names that they read are watched, but not their code.

    Args:
        roots: functions and constant arguments.
        objects: watch the contents of objects among ``roots``, or whose methods are, which the caller does not compare.
    """
    walk = _Walk(roots)
    if not objects:
        return walk.watched()
    walk.look_into(roots)
    found = walk.watched()
    found.same = unchanged_since([x for x, _ in found.contents], others=lambda x: not can_change(x))
    return found


class _Walk:
    """A walk over the objects that functions lead to."""

    def __init__(self, roots: Iterable[object]):
        self._roots = {id(_plain(x)) for x in roots}
        self._entries: dict[tuple[int, str], Entry] = {}
        self._contents: dict[int, tuple[object, Hashable]] = {}
        self._seen: dict[int, object] = {}
        self._left: list[Any] = list(roots)
        self._parts = 0

    def watched(self) -> Watched:
        """Run the walk and return the watch list."""
        while self._left:
            x = _plain(self._left.pop())
            if id(x) in self._seen:
                continue
            self._seen[id(x)] = x
            if isinstance(x, types.FunctionType):
                if is_users_function(x) or id(x) in self._roots:
                    self._function(x)
            elif isinstance(x, type):
                if is_users_class(x):
                    self._class(x)
            else:
                self._left += self._parts_of(x)
        return Watched(tuple(self._entries.values()), tuple(self._contents.values()))

    def look_into(self, roots: Iterable[object]) -> None:
        """Watch the contents of objects and of those that methods and partial functions are bound to."""
        for x in roots:
            if isinstance(x, types.MethodType | functools.partial):
                self.look_into(self._parts_of(cast("object", x)))
            else:
                self._look(x)

    def _entry(self, owner: Any, name: str, value: object) -> None:
        self._entries[id(owner), name] = Entry(owner, name, value)
        self._look(value)

    def _look(self, value: object) -> None:
        """Watch the contents of a value that a function reads, and the functions in it."""
        self._left.append(value)
        if id(value) not in self._contents and can_change(value):
            self._contents[id(value)] = (value, _content(value))

    def _class(self, kind: type) -> None:
        self._contents[id(kind)] = (kind, _content(kind))
        self._left += [x for base in kind.__mro__ if is_users_class(base) for x in vars(base).values()]

    def _parts_of(self, x: Any) -> Iterator[object]:
        """Yield the parts of a value that may be or contain functions, up to ``_MOST`` in all."""
        self._parts += 1
        if self._parts > _MOST:
            return
        if isinstance(x, property):
            yield from (x.fget, x.fset)
        elif isinstance(x, types.MethodType):
            yield from (x.__func__, x.__self__)
        elif isinstance(x, functools.partial):
            p = cast("functools.partial[object]", x)
            yield from (p.func, *p.args, *p.keywords.values())
        elif isinstance(x, functools.cached_property):
            yield x.func
        elif isinstance(x, tuple | list | set | frozenset | deque):
            yield from islice(cast("Iterable[object]", x), _MOST)
        elif isinstance(x, dict | types.MappingProxyType):
            yield from islice(cast("Mapping[object, object]", x).values(), _MOST)
        elif is_users_class(type(x)) or isinstance(x, types.SimpleNamespace):
            yield type(x)
            yield from (fields_of(x) or {}).values()
        elif callable(x):  # the result of a decorator such as functools.lru_cache
            yield getattr(x, "__wrapped__", None)

    def _function(self, f: types.FunctionType) -> None:
        if is_users_function(f):  # Each entry costs a call 20 ns.
            self._entry(f, _CODE, f.__code__)
            # A function that had no defaults was called with all of its arguments, so new defaults are not used.
            if f.__defaults__ is not None:
                self._entry(f, _DEFAULTS, f.__defaults__)
            if f.__kwdefaults__ is not None:
                self._entry(f, _KEYWORD_DEFAULTS, f.__kwdefaults__)
        if f.__dict__.keys() - {"__wrapped__"}:
            self._look(f.__dict__)
        self._left.append(f.__dict__.get("__wrapped__"))
        for read in reads_of(f.__code__):
            self._read(f, read)
        for cell in f.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # The cell is still empty.
                continue
            self._entry(cell, "cell_contents", value)
            self._module(f, value)

    def _module(self, f: types.FunctionType, module: object) -> None:
        """Watch the attributes of a module that a function may read: the names in its code."""
        if isinstance(module, types.ModuleType) and is_users_module(module):
            for name in {n for c in codes_in(f.__code__) for n in c.co_names} & vars(module).keys():
                value = vars(module)[name]
                if self._entries.get((id(vars(module)), name)) is None:
                    self._entry(vars(module), name, value)
                    self._module(f, value)

    def _read(self, f: types.FunctionType, read: Read) -> None:
        """Watch a global that a function reads, and the attributes read from the user's modules."""
        space, name, attributes = f.__globals__, read.name, list(read.attributes)
        if read.level >= 0:  # The function itself runs the import.
            path, package = "." * read.level + read.name, space.get("__package__")
            if read.level == 0:
                self._module(f, sys.modules.get(read.name.partition(".")[0]))
            elif package:
                self._module(f, sys.modules.get(resolve_name(path, package)))
            return
        while name in space:
            value = space[name]
            if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == _OWN:
                return
            self._entry(space, name, value)
            if not isinstance(value, types.ModuleType) or not is_users_module(value):
                return
            if not attributes:
                self._module(f, value)
                return
            space, name = vars(value), attributes.pop(0)


_MOST, _DEEPEST = 4096, 64


def _is_array(value: object) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def can_change(value: object) -> bool:
    """Return True if a value is mutable or contains mutable values."""
    if isinstance(value, tuple):
        return any(map(can_change, value))
    if isinstance(value, type):
        return is_users_class(value)
    if isinstance(value, Enum):
        return False
    return isinstance(value, _CONTAINERS) or _is_array(value) or is_users_class(type(value))


_CONTAINERS = (list, dict, set, deque, bytearray, types.MappingProxyType, types.SimpleNamespace)


def _defines(name: str, value: object) -> bool:
    """Return True if a class entry affects its instances. Python reserves most other names with two underscores."""
    return not name.startswith("__") or isinstance(value, _METHODS) or hasattr(value, "__wrapped__")


_METHODS = (types.FunctionType, staticmethod, classmethod, property)


def _content(value: object) -> Hashable:
    """Return the contents of a value, up to ``_MOST`` parts. Functions and library objects are compared by identity."""
    left = [_MOST]
    above: set[int] = set()

    def walk(x: Any) -> Hashable:
        left[0] -= 1
        if isinstance(x, bool | int | str | bytes):
            return (type(x), x)
        if isinstance(x, float):
            return (float, x.hex())
        if isinstance(x, Numeric) and x.is_static:
            return (type(x), repr(x.value))
        if left[0] < 0 or len(above) > _DEEPEST or id(x) in above or (not can_change(x) and not isinstance(x, tuple)):
            return Same(x)
        above.add(id(x))
        try:
            if isinstance(x, list | tuple | deque):
                return (type(x), *map(walk, x))
            if isinstance(x, bytearray):
                return (bytearray, bytes(x))
            if isinstance(x, set):
                return (set, frozenset(map(walk, x)))
            if isinstance(x, dict | types.MappingProxyType):
                return (type(x), *[(walk(k), walk(v)) for k, v in list(x.items())])
            if _is_array(x):
                return (x.shape, str(x.dtype), x.tobytes() if x.size <= _MOST and not x.dtype.hasobject else Same(x))
            if isinstance(x, type):
                kinds = [k for k in x.__mro__ if is_users_class(k)]
                held = [(n, walk(v)) for k in kinds for n, v in list(vars(k).items()) if _defines(n, v)]
                return (*map(Same, x.__mro__), *held)
            return (walk(type(x)), *[(n, walk(v)) for n, v in (fields_of(x) or {}).items()])
        finally:
            above.discard(id(x))

    return walk(value)


def _plain(value: Any) -> Any:
    """Return the undecorated function, also of a method; other values unchanged."""
    if isinstance(value, BoundMethod):
        value = value.function
    return plain(value)


# ---------------------------------------------------------------------------------------------------------- fast checks


_PLAIN = (bool, int, float, complex, str, bytes, type(None), Enum, type, types.BuiltinFunctionType, types.ModuleType)
_MOST_CHECKED = 256
"""Maximum number of objects checked by a cached call. Beyond it, calls take the slow path."""


def never_changes(value: object) -> bool:
    """Return True if a value is immutable."""
    if isinstance(value, _PLAIN) or (isinstance(value, Numeric) and value.is_static):
        return True
    if isinstance(value, tuple):
        return all(map(never_changes, value))
    return isinstance(value, types.FunctionType) and value.__closure__ is None  # Its code is watched separately.


def _holds_attributes_only(kind: type) -> bool:
    """Return True if instances of a class are fully described by their attributes."""
    return is_users_class(kind) or kind is types.SimpleNamespace or kind.__module__.startswith("cute_dialect.")


def unchanged_since(
    values: Iterable[object], *, others: Callable[[object], bool] = lambda _: False
) -> Callable[[], bool] | None:
    """Return a function that checks whether the values still hold the same objects.

    The result is None if comparing identities does not suffice. ``others(x)`` returns True for opaque objects that are
    assumed not to change.
    """
    sequences: list[tuple[Any, int, tuple[object, ...]]] = []
    spaces: list[tuple[Any, Any, Mapping[str, Any], list[object], tuple[object, ...]]] = []
    seen: set[int] = set()
    left = list(values)
    while left:
        x = cast(Any, left.pop())
        if id(x) in seen or (never_changes(x) and not (isinstance(x, type) and can_change(x))):
            continue
        seen.add(id(x))
        kind: Any = type(x)
        if kind is list:
            sequences.append((x, len(x), tuple(x)))
            left += cast("list[object]", x)
        elif isinstance(x, tuple):
            left += cast("tuple[object, ...]", x)
        elif kind is dict:
            held: Mapping[str, Any] = cast("dict[str, Any]", x)
            spaces.append((None, None, held, [*held], tuple(held.values())))
            left += [*held, *held.values()]
        elif isinstance(x, type):
            for base in [k for k in kind.mro(x) if is_users_class(k)]:
                held = vars(base)
                spaces.append((None, None, held, [*held], tuple(held.values())))
                left += [v for n, v in held.items() if not n.startswith("__") and can_change(v)]
        elif hasattr(x, "__dict__") and all(map(_holds_attributes_only, kind.mro()[:-1])):
            if any("__slots__" in vars(k) for k in kind.mro()):
                return None
            held = vars(x)
            spaces.append((x, kind, held, [*held], tuple(held.values())))
            left += held.values()
        elif not others(x):
            return None
    if len(sequences) + len(spaces) > _MOST_CHECKED:
        return None

    def same() -> bool:
        for x, n, held in sequences:
            if len(x) != n or not all(map(is_, x, held)):
                return False
        for owner, kind, space, names, held in spaces:
            if [*space] != names or not all(map(is_, space.values(), held)):
                return False
            if owner is not None and (owner.__dict__ is not space or type(owner) is not kind):
                return False
        return True

    return same
