"""Snapshots of the Python objects that a run-time branch or loop can change, and forms of containers.

A place is an element of a list or dict, an attribute of an instance, class or function, or a captured variable of a
closure.  A :class:`Snapshot` copies the places reachable from the names that a region reads.  The region can then be
traced again from the same state, and the states that its sides leave can be merged::

    xs = [a]
    if a > 3:                  # snapshot: the list's element is a
        xs[0] = 7              # state after this side: [7]
                               # the other side starts from a again; afterwards xs[0] is an scf.if result

The search follows containers, instances and their classes, closures, parameter defaults, and the module-level objects
that the user's functions name.  State that Python cannot copy is compared instead, and a change raises an error: the
:mod:`.positions` of iterators and arrays, module globals, and slots of containers.  Objects of NumPy and torch have
only their attributes compared.  Other libraries and the language's own values are not searched.

A container that a loop replaces is joined element by element (:class:`ContainerForm`).
"""

from __future__ import annotations

import copy
import dis
import enum
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from gc import get_referents
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any
from weakref import ref

from cute_dialect.lang.control.positions import elements, has_position, position, same_position
from cute_dialect.lang.rewrite.module_state import state_of
from cute_dialect.lang.rewrite.source import (
    has_convertible_globals,
    is_convertible,
    is_convertible_class,
)
from cute_dialect.lang.tracing.errors import LimitError, MergeError
from cute_dialect.lang.tracing.source_location import is_package_class
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form, made_of
from cute_dialect.lang.values.forms import ConstForm, TupleForm, form_of, is_value, same_static

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

LIMIT = 20_000
"""Maximum number of objects that a snapshot may reach."""


class _Unbound:
    """Placeholder for the value of an unbound name."""

    def __repr__(self) -> str:
        return "<unbound>"


U = _Unbound()

(
    _LEAF, _LIST, _DICT, _SET, _INSTANCE, _TUPLE, _FUNCTION, _CELL, _SLOTS, _METHOD, _ITERATOR, _PARTIAL, _VALUE,
    _DEQUE, _CLASS, _MODULE, _OPAQUE, _DECORATED, _ENUM, _LIBRARY,
) = range(20)  # fmt: skip
_KINDS: dict[type, int] = {
    int: _LEAF, float: _LEAF, bool: _LEAF, str: _LEAF, bytes: _LEAF, type(None): _LEAF, complex: _LEAF, range: _LEAF,
    type: _CLASS, ModuleType: _MODULE, BuiltinFunctionType: _OPAQUE, slice: _LEAF, _Unbound: _LEAF, list: _LIST,
    dict: _DICT, set: _SET, tuple: _TUPLE, FunctionType: _FUNCTION, CellType: _CELL, MethodType: _METHOD,
    partial: _PARTIAL, deque: _DEQUE, bytearray: _ITERATOR, frozenset: _TUPLE, GeneratorType: _ITERATOR,
    CodeType: _LEAF, FrameType: _LEAF,
}  # fmt: skip
_USERS: set[type] = set()
"""User-defined classes among those in ``_KINDS``. The search continues from an instance to its class."""
_WITH_DICT: set[type] = set()
"""Subclasses of containers whose instances have attributes in addition to elements."""
_CALLS = ("cute_dialect.lang.calls.decorators", "cute_dialect.lang.calls.decorators")
"""The modules of decorated functions."""
_FOREIGN = frozenset(("xdsl", "mlir", "numpy", "torch", "jax", "jaxlib", "cupy", "cuda", "ml_dtypes", "logging"))
_MEMBERS: dict[type, dict[str, GetSetDescriptorType | MemberDescriptorType]] = {}
"""Classes with slots -> the descriptors of the slots of all their bases, by name. A name that a base repeats has the
name of the base before it."""
_C_MEMBERS: dict[type, tuple[str, ...]] = {BaseException: ("args",), defaultdict: ("default_factory",)}
"""Attributes of built-in classes that are not in the ``__dict__`` of an instance."""
_SET_BY_PYTHON = """
    __abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ __builtins__
    __dataclass_fields__ __dataclass_params__ __dict__ __doc__ __firstlineno__ __match_args__ __module__
    __non_callable_proto_members__ __orig_bases__ __parameters__ __protocol_attrs__ __slotnames__ __slots__
    __static_attributes__ __type_params__ __warningregistry__ __weakref__ _inverted_ _unhashable_values_
    _unhashable_values_map_ _value2member_map_
"""
_COMPUTED = frozenset(_SET_BY_PYTHON.split())
"""Attributes of classes, enum members and modules that Python sets, some of them on first access."""
_ATTRIBUTES: dict[type, tuple[dict[str, Any], dict[str, Any]]] = {}
"""User-defined classes -> their namespaces when last read, and the result of :func:`_attributes` then."""
_NAMES_READ: dict[int, tuple[CodeType, tuple[str, ...]]] = {}


def _kind(cls: type) -> int:
    kind = _KINDS[cls] = _new_kind(cls)
    if kind not in (_LEAF, _VALUE) and is_convertible_class(cls):
        _USERS.add(cls)
    if kind in (_LIST, _DICT, _SET, _TUPLE, _DEQUE) or (kind == _ITERATOR and _is_open(cls)):
        if cls.__dictoffset__:
            _WITH_DICT.add(cls)
        if members := _members(cls):
            _MEMBERS[cls] = members
    return kind


def _new_kind(cls: type) -> int:
    if issubclass(cls, Dynamic):
        return _VALUE if hasattr(cls, "__cute_places__") else _LEAF
    if issubclass(cls, type):
        return _CLASS
    if is_package_class(cls) and issubclass(cls, enum.Enum):
        return _LEAF
    if has_position(cls) or (issubclass(cls, Iterator) and is_package_class(cls) and not is_convertible_class(cls)):
        return _ITERATOR
    library = cls.__module__.split(".")[0]
    if library in _FOREIGN:
        # Its contents are not searched, because it may be a whole model.
        return _LIBRARY if library in ("numpy", "torch") and cls.__dictoffset__ else _LEAF
    if issubclass(cls, enum.Enum):
        return _ENUM
    for base, kind in _BASES:
        if issubclass(cls, base):
            return kind
    if is_package_class(cls):
        if hasattr(cls, "__cute_places__"):
            return _VALUE
        return _DECORATED if cls.__module__ in _CALLS else _LEAF
    if members := _members(cls):
        _MEMBERS[cls] = members
        return _SLOTS
    return _INSTANCE if cls.__dictoffset__ else _OPAQUE


def _is_open(cls: type) -> bool:
    """Return True if the attributes of a class with a position are the user's, and no library's caches."""
    return is_convertible_class(cls) or cls.__module__.partition(".")[0] == "torch"


def _members(cls: type) -> dict[str, GetSetDescriptorType | MemberDescriptorType]:
    found: dict[str, GetSetDescriptorType | MemberDescriptorType] = {}
    for c in cls.__mro__:
        own = vars(c)
        names = _C_MEMBERS.get(c, ())
        if "__slots__" in own:  # The names in it are without the class's name before a private one.
            names = [n for n, d in own.items() if isinstance(d, MemberDescriptorType)]
        for n in names:
            found[f"{c.__qualname__}.{n}" if n in found else n] = own[n]
    return found


def _member_values(obj: object) -> dict[str, object]:
    """Return the values of the slots of an instance that are set."""
    kept: dict[str, object] = {}
    for n, member in _MEMBERS[type(obj)].items():
        try:
            value = member.__get__(obj)
        except AttributeError:
            continue
        kept[n] = value
    return kept


def set_attribute(obj: object, name: str, value: object) -> None:
    """Set an attribute of an instance by its name in :func:`kept_in`, regardless of the class's ``__setattr__``."""
    member = _MEMBERS.get(type(obj), {}).get(name)
    if member is None:
        object.__setattr__(obj, name, value)
    else:
        member.__set__(obj, value)


def _delete_attribute(obj: object, name: str) -> None:
    member = _MEMBERS.get(type(obj), {}).get(name)
    if member is None:
        object.__delattr__(obj, name)
    else:
        member.__delete__(obj)


def kept_in(obj: Any) -> dict[Any, Any] | list[Any] | set[Any] | None:
    """Return a copy of a mutable object's contents by index, key or attribute; None for values and classes."""
    kind = _KINDS.get(type(obj))
    return _kept(obj, _kind(type(obj)) if kind is None else kind)


def _kept(obj: Any, kind: int) -> dict[Any, Any] | list[Any] | set[Any] | None:
    if kind in (_LIST, _DEQUE):
        return list(obj)
    if kind == _DICT:
        return dict(obj)
    if kind == _INSTANCE:
        return dict(obj.__dict__)
    if kind == _SET:
        return set(obj)
    if kind == _CELL:
        try:
            return [obj.cell_contents]
        except ValueError:
            return [U]
    if kind == _SLOTS:
        kept = _member_values(obj)
        kept.update(getattr(obj, "__dict__", {}))
        return kept
    if kind == _VALUE:
        return {n: getattr(obj, n) for n in obj.__cute_places__}
    return None


def _attributes(cls: object) -> dict[str, Any]:
    """Return the attributes of a class or enum member, except those that Python sets.

    The dict is the same object until the class changes.  Callers must not modify it.
    """
    held = vars(cls)
    if not isinstance(cls, type):
        return {n: v for n, v in held.items() if n not in _COMPUTED}
    known = _ATTRIBUTES.get(cls)
    if known is not None and _holds(held, known[0]):
        return known[1]
    found = {n: v for n, v in held.items() if n not in _COMPUTED}
    _ATTRIBUTES[cls] = dict(held), found
    return found


def is_mutable(obj: Any) -> bool:
    """Return True if an object has mutable state, so that aliases see each other's changes."""
    kind = _KINDS.get(type(obj))
    if kind is None:
        kind = _kind(type(obj))
    if kind in (_INSTANCE, _SLOTS):
        return not _is_frozen(type(obj))
    return kind in (_LIST, _DICT, _SET, _CELL, _DEQUE, _ITERATOR)


def _is_frozen(cls: type) -> bool:
    params = getattr(cls, "__dataclass_params__", None)
    return params is not None and params.frozen


def put_back(obj: Any, kept: Any) -> None:
    """Restore an object's contents."""
    kind = _KINDS[type(obj)]
    if kind == _LIST:
        obj[:] = kept
    elif kind == _DEQUE:
        obj.clear()
        obj.extend(kept)
    elif kind in (_DICT, _SET):
        obj.clear()
        obj.update(kept)
    elif kind == _CELL:
        if kept[0] is U:
            del obj.cell_contents
        else:
            obj.cell_contents = kept[0]
    elif kind == _INSTANCE:
        obj.__dict__.clear()
        obj.__dict__.update(kept)
    elif kind == _CLASS:
        now = _attributes(obj)
        for name in now.keys() - kept.keys():
            delattr(obj, name)
        for name, value in kept.items():
            if now.get(name, U) is not value:
                setattr(obj, name, value)
    elif kind == _ENUM:
        for name in _attributes(obj).keys() - kept.keys():
            del obj.__dict__[name]
        obj.__dict__.update(kept)
    else:
        now = kept_in(obj)
        assert isinstance(now, dict)
        for name in now:
            if name not in kept:
                _delete_attribute(obj, name)
        for name, value in kept.items():
            if now.get(name, U) is not value:
                set_attribute(obj, name, value)


def put(obj: Any, slot: Any, value: object) -> None:
    """Set an element, an attribute or a captured variable."""
    kind = _KINDS[type(obj)]
    if kind in (_LIST, _DICT, _DEQUE):
        obj[slot] = value
    elif kind == _CELL:
        obj.cell_contents = value
    elif kind in (_INSTANCE, _ENUM):
        obj.__dict__[slot] = value
    elif kind == _CLASS:
        setattr(obj, slot, value)
    else:
        set_attribute(obj, slot, value)


def parts_of(obj: Any, kept: Any, attributes: Any = None) -> dict[tuple[bool, Any], Any]:
    """Return the parts of a container or instance by ``(True, index or key)`` and ``(False, attribute)``.

    Args:
        obj: the container or instance.
        kept: its contents, as returned by :func:`kept_in`.
        attributes: the attributes of an instance of a container class, if not the current ones.
    """
    items = _KINDS[type(obj)] in (_LIST, _DICT, _DEQUE, _TUPLE)
    parts = {(items, k): v for k, v in (kept.items() if isinstance(kept, dict) else enumerate(kept))}
    if type(obj) in _WITH_DICT:
        held: dict[str, Any] = obj.__dict__ if attributes is None else attributes
        parts.update(((False, k), v) for k, v in held.items())
    if items and type(obj) in _MEMBERS:
        parts.update(((False, k), v) for k, v in _member_values(obj).items())
    return parts


def empty_like(obj: Any, kept: Any) -> Any:
    """Return a new object of the same class, whose parts are then set.

    Args:
        obj: a container or instance.
        kept: its contents, as returned by :func:`kept_in`. Only their number and the keys matter.
    """
    if _KINDS[type(obj)] not in (_LIST, _DICT, _DEQUE):
        return object.__new__(type(obj))
    made = copy.copy(obj)
    if type(obj) in _WITH_DICT:
        made.__dict__.clear()
    put_back(made, kept)
    return made


def set_part(obj: Any, part: tuple[bool, Any], value: object) -> None:
    """Set an element or attribute of an object that :func:`empty_like` made."""
    is_item, key = part
    if is_item:
        obj[key] = value
    else:
        set_attribute(obj, key, value)


def _led_to(f: FunctionType) -> list[Any]:
    """Return the objects reachable from a function.

    These are its captured variables and, for a user's function, its attributes, parameter defaults and the module-level
    objects that its code names.
    """
    code = f.__code__
    found: list[Any] = [*(f.__closure__ or ())]
    if f.__defaults__:
        found += f.__defaults__
    if f.__kwdefaults__:
        found.append(f.__kwdefaults__)
    if is_convertible(code.co_filename, f.__module__):
        found.append(f.__dict__)
        names = names_read(code)
        named = [value for name in names if (value := f.__globals__.get(name)) is not None]
        found += named
        captured = [x for cell in f.__closure__ or () for x in kept_in(cell) or ()]
        for value in (*named, *captured):
            if isinstance(value, ModuleType):
                found += state_of(value, names)
    elif f.__dict__:
        found.append(f.__dict__)
    return found


def names_read(code: CodeType) -> Collection[str]:
    """Return the global and attribute names in a function and its nested functions."""
    known = _NAMES_READ.get(id(code))
    if known is None or known[0] is not code:
        names: dict[str, None] = {}
        todo = [code]
        while todo:
            c = todo.pop()
            names.update(dict.fromkeys(c.co_names))
            todo += [k for k in c.co_consts if isinstance(k, CodeType)]
        known = _NAMES_READ[id(code)] = (code, tuple(names))
    return known[1]


def _behind(obj: Any) -> list[Any]:
    """Return the objects behind a C object.

    These are the receiver of a bound method, the source of a view or iterator, and the objects in an array.
    """
    receiver = getattr(obj, "__self__", None)
    if receiver is not None:
        return [receiver]
    if isinstance(obj, MappingProxyType):
        return [*obj.values()]
    if isinstance(obj, ref):
        return [obj()]
    return _referents(obj) + elements(obj)


def _referents(obj: Any) -> list[Any]:
    found: list[Any] = []
    for part in get_referents(obj):
        # Such a dict may be the table of a cache or class, which must not be restored.
        found += part.values() if type(part) is dict else (part,)
    return found


_BASES = (
    (list, _LIST),
    (dict, _DICT),
    (set, _SET),
    (tuple, _TUPLE),
    (ModuleType, _MODULE),
    (deque, _DEQUE),
    (frozenset, _TUPLE),
    (partial, _PARTIAL),
)
"""Built-in classes whose subclasses are searched as they are."""


def _is_stored_by_other_thread(names: Mapping[str, Any], name: str) -> bool:
    """Return True if another thread is running code of the module that assigns the global ``name``.

    A program may assign globals, as in a loop of its top level, while ``cute.compile_async`` traces in a thread.
    """
    own = threading.get_ident()
    for thread, innermost in sys._current_frames().items():
        frame = innermost if thread != own else None
        while frame is not None:
            if frame.f_globals is names and any(
                i.argval == name
                for i in dis.get_instructions(frame.f_code)
                if i.opname in ("STORE_NAME", "STORE_GLOBAL")
            ):
                return True
            frame = frame.f_back
    return False


class Snapshot:
    """The state of the reachable mutable objects at one point.

    Args:
        roots: the objects at which the search starts.
        names: the globals of the region's function; None if a function among the roots leads to them.
    """

    __slots__ = ("classes", "functions", "iterators", "objects", "seen", "spaces")

    def __init__(self, roots: Iterable[Any], names: Mapping[str, Any] | None = None):
        self.objects: dict[int, tuple[Any, Any]] = {}
        self.iterators: dict[int, tuple[Any, Any]] = {}
        self.spaces: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        self.seen: dict[int, Any] = {}
        self.classes: list[tuple[object, Any]] = []
        """Instances and their classes, and classes and their bases."""
        self.functions: list[tuple[FunctionType, CodeType, object]] = []
        """Functions, their code and their parameter defaults."""
        if names is not None:
            self.watch(names)
        self.add(roots)

    def watch(self, names: Mapping[str, Any]) -> None:
        """Watch the globals of a user's module for later comparison."""
        if id(names) not in self.spaces and has_convertible_globals(names):
            self.spaces[id(names)] = (names, dict(names))

    def add(self, roots: Iterable[Any]) -> None:
        """Continue the search from further roots. Objects that are already known keep their recorded state."""
        seen, objects, kinds = self.seen, self.objects, _KINDS
        todo = list(roots)
        while todo:
            obj = todo.pop()
            cls = type(obj)
            kind = kinds.get(cls)
            if kind is None:
                kind = _kind(cls)
            if kind == _LEAF:
                continue
            key = id(obj)
            if key in seen:
                continue
            if kind == _CLASS and not is_convertible_class(obj):
                continue
            seen[key] = obj
            if cls in _USERS:
                todo.append(cls)
            if kind == _TUPLE:
                todo += obj
            elif kind == _FUNCTION:
                todo += self.led_to(obj)
                self.functions.append((obj, obj.__code__, obj.__defaults__))
                self.watch(obj.__globals__)
            elif kind == _METHOD:
                todo += (obj.__func__, obj.__self__)
            elif kind == _PARTIAL:
                todo += (obj.func, *obj.args, *obj.keywords.values(), obj.__dict__)
            elif kind == _ITERATOR:
                self.iterators[key] = (obj, _watched(obj))
                todo += _behind(obj)
            elif kind == _LIBRARY:
                self.iterators[key] = (obj, _watched(obj))
            elif kind == _OPAQUE:
                todo += _behind(obj)
            elif kind == _MODULE:
                self.watch(vars(obj))
            elif kind == _DECORATED:
                todo += [getattr(obj, n, None) for n in ("function", "__self__")]
            elif kind == _CLASS:
                kept = self.content(obj, kind)
                objects[key] = (obj, kept)
                todo += [*kept.values(), *obj.__bases__]
                self.classes.append((obj, obj.__bases__))
            else:
                kept = self.content(obj, kind)
                objects[key] = (obj, kept)
                todo += kept.values() if isinstance(kept, dict) else kept or ()
                if kind == _DICT:
                    todo += kept  # pyright: ignore
                elif kind == _INSTANCE and cls not in _USERS:
                    todo += _referents(obj)
                if kind in (_INSTANCE, _SLOTS) or cls in _USERS:
                    self.classes.append((obj, cls))
                if cls in _MEMBERS and kind != _SLOTS:
                    self.iterators[key] = (obj, _watched(obj))
                    todo += _member_values(obj).values()
            if cls in _WITH_DICT:
                todo.append(obj.__dict__)
            if len(seen) > LIMIT:
                raise LimitError(
                    "F170", f"more than {LIMIT:,} Python objects are reachable from the names in this branch or loop",
                    hint="keep large Python data in NumPy arrays, or away from functions that kernels call",
                )  # fmt: skip

    def content(self, obj: Any, kind: int) -> Any:
        """Return a copy of the contents of a mutable object."""
        return _attributes(obj) if kind in (_CLASS, _ENUM) else _kept(obj, kind)

    def led_to(self, f: FunctionType) -> list[Any]:
        """Return the objects to which the search continues from a function."""
        return _led_to(f)

    def cells(self) -> list[Any]:
        return [kept[0] for obj, kept in self.objects.values() if type(obj) is CellType]

    def moved(self) -> object:
        """Return an iterator that was advanced, or an array that was changed, since the snapshot; or None."""
        return next((obj for obj, before in self.iterators.values() if not same_position(_watched(obj), before)), None)

    def check_definitions(self) -> None:
        """Raise F209 if the class of an instance, or what defines a class or function, changed since the snapshot."""
        what = ""
        for obj, before in self.classes:
            if type(obj) is not before and (not isinstance(obj, type) or obj.__bases__ is not before):
                if isinstance(obj, type):
                    what = f"the bases of class '{obj.__name__}'"
                else:
                    what = f"the class of a '{before.__name__}' object"
        for f, code, defaults in self.functions:
            if f.__code__ is not code or f.__defaults__ is not defaults:
                what = f"the code or the defaults of function '{f.__name__}'"
        if what:
            raise MergeError(
                "F209", f"{what} changed in a run-time branch or loop",
                hint="keep the changing values in attributes of an object",
            )  # fmt: skip

    def rebound_global(self) -> tuple[str, str] | None:
        """Return the name and module of a global assigned or deleted since the snapshot, or None."""
        for names, before in self.spaces.values():
            if _holds(names, before):
                continue
            for name in {**before, **names}:
                value = names.get(name, U)
                if name in _COMPUTED or value is before.get(name, U):
                    continue
                if name not in before and isinstance(value, type | ModuleType | FunctionType):
                    continue  # It was imported meanwhile.
                if not _is_stored_by_other_thread(names, name):
                    return name, str(names.get("__name__"))
        return None

    def restore(self, only: Any = None) -> None:
        """Restore all objects, or one of them."""
        for obj, cls in self.classes:
            if type(obj) is not cls and not isinstance(obj, type):
                obj.__class__ = cls
        for obj, kept in self.objects.values() if only is None else (self.objects[id(only)],):
            if _kept_now(obj, kept) is not kept:
                put_back(obj, kept)

    def state(self) -> dict[int, Any]:
        """Return the current contents of all objects.

        Those of an unchanged object are the object in the snapshot, so that callers can skip them by identity.
        """
        self.check_definitions()
        return {key: _kept_now(obj, kept) for key, (obj, kept) in self.objects.items()}


def _kept_now(obj: Any, kept: Any) -> Any:
    """Return the current contents of an object: ``kept``, its earlier contents, if they have not changed."""
    cls = type(obj)
    kind = _KINDS[cls]
    if kind == _INSTANCE:
        now = obj.__dict__
        return kept if _holds(now, kept) else dict(now)
    if cls is list or cls is dict or cls is set:  # Subclasses may iterate in another order.
        return kept if _holds(obj, kept) else _kept(obj, kind)
    now = _attributes(obj) if kind in (_CLASS, _ENUM) else _kept(obj, kind)
    return kept if _holds(now, kept) else now


def _watched(obj: object) -> object:
    """Return the state of an object that is compared: its position, or the attributes that cannot be restored."""
    cls = type(obj)
    kind = _KINDS[cls]
    if kind == _LIBRARY:
        return (*vars(obj), *vars(obj).values())
    found = position(obj) if kind == _ITERATOR else None
    if cls not in _MEMBERS:
        return found
    values = _member_values(obj)
    return (found, *values, *values.values())


def _holds(now: Any, kept: Any) -> bool:
    """Return True if contents, or the container itself, hold the same objects in the same order."""
    if now is kept:
        return True
    if len(now) != len(kept):
        return False
    if isinstance(kept, dict):
        return all(map(is_, now, kept)) and all(map(is_, now.values(), kept.values()))
    if isinstance(kept, set):
        return {id(x) for x in now} == {id(x) for x in kept}
    return all(map(is_, now, kept))


def same(a: Any, b: Any) -> bool:
    """Return True if two values are the same object, equal static values, or have the same form and leaves."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Dynamic):
        if getattr(a, "is_static", False) or getattr(b, "is_static", False):
            return same_static(a, b)
        if isinstance(a, Numeric):
            return a.value is b.value  # Facts may differ.
        form = a.__cute_form__()
        if form != b.__cute_form__():
            return False
        return all(x is y for x, y in zip(form.take(a), form.take(b)))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return same_static(a, b)


# -------------------------------------------------------------------------------------------------- replaced containers


class ContainerForm(Form):
    """The form of a list, dict or mutable instance that a loop replaces. ``make`` builds a new object."""

    __slots__ = ("forms", "like", "types")

    def __init__(self, like: object, forms: Mapping[tuple[bool, Any], Form]):
        self.like = like
        self.forms = dict(forms)
        self.types = tuple(t for f in self.forms.values() for t in f.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContainerForm) and type(self.like) is type(other.like) and self.forms == other.forms

    def __hash__(self) -> int:
        return hash((type(self.like), *self.forms))

    def take(self, value: object) -> list[SSAValue]:
        parts = parts_of(value, kept_in(value))
        return [leaf for part, form in self.forms.items() for leaf in form.take(parts[part])]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        items = [key for is_item, key in self.forms if is_item]
        made = empty_like(self.like, dict.fromkeys(items) if isinstance(self.like, dict) else [None] * len(items))
        for part, value in zip(self.forms, made_of(self.forms.values(), leaves)):
            set_part(made, part, value)
        return made

    def join(self, other: Form) -> Form:
        if isinstance(other, ConstForm) and can_carry(other.value):
            other = carried_form(other.value, U)
        if not isinstance(other, ContainerForm) or type(self.like) is not type(other.like):
            raise MergeError("F204", f"it is {self.describe()} or {getattr(other, 'describe', lambda: other)()}")
        if list(self.forms) != list(other.forms):
            raise shape_error(self.like, other.like)
        return ContainerForm(self.like, {part: form.join(other.forms[part]) for part, form in self.forms.items()})

    def widened(self) -> Form:
        return ContainerForm(self.like, {part: form.widened() for part, form in self.forms.items()})

    def loosened(self) -> Form:
        return ContainerForm(self.like, {part: form.loosened() for part, form in self.forms.items()})

    def describe(self) -> str:
        """Return its description for messages."""
        return f"a {type(self.like).__name__} object"


def shape_error(a: Any, b: Any) -> MergeError:
    """Return the error for containers or instances of one type with different elements or attributes."""
    name = type(a).__name__
    if isinstance(a, list) and len(a) != len(b):
        return MergeError(
            "F207", f"it is a {name} of {len(a)} or {len(b)} elements",
            hint="its length must be the same in each iteration",
        )  # fmt: skip
    return MergeError(
        "F207", f"it refers to two {name} objects with different keys or attributes, or another order of keys"
    )


def can_carry(value: object) -> bool:
    """Return True for a container or mutable instance that a loop may replace by another one."""
    return (
        is_mutable(value) and not is_value(value) and not isinstance(value, set | CellType)
        and kept_in(value) is not None
    )  # fmt: skip


def carried_form(before: object, after: object) -> Form:
    """Return the form of a variable that is ``before`` at the start of an iteration and ``after`` at its end.

    Mutable objects in both values stay static parts of the form.
    """
    if before is after:
        return ConstForm(before) if can_carry(before) else form_of(before).widened().loosened()
    if isinstance(before, tuple):
        others = after if isinstance(after, tuple) and len(after) == len(before) else [U] * len(before)
        return TupleForm(type(before), [carried_form(x, y) for x, y in zip(before, others)])
    if not can_carry(before):
        return form_of(before).widened().loosened()
    parts = parts_of(before, kept_in(before))
    others = parts_of(after, kept_in(after)) if type(after) is type(before) else {}
    return ContainerForm(before, {part: carried_form(x, others.get(part, U)) for part, x in parts.items()})


def shaped_like(form: Form, value: object) -> Form:
    """Return the form of a value, in which the objects are new where they are in ``form``."""
    if isinstance(form, ContainerForm):
        parts = parts_of(value, kept_in(value))
        return ContainerForm(value, {part: shaped_like(f, parts[part]) for part, f in form.forms.items()})
    if isinstance(form, TupleForm) and isinstance(value, tuple):
        return TupleForm(form.kind, [shaped_like(f, x) for f, x in zip(form.parts, value)])
    return form_of(value)


def replaced_in(form: Form, value: object) -> list[object]:
    """Return the mutable objects of a value that are new in each iteration."""
    if isinstance(form, ContainerForm):
        parts = parts_of(value, kept_in(value))
        return [value, *(x for part, f in form.forms.items() for x in replaced_in(f, parts[part]))]
    if isinstance(form, TupleForm) and isinstance(value, tuple):
        return [x for f, v in zip(form.parts, value) for x in replaced_in(f, v)]
    return []


def shared_in(form: Form) -> list[object]:
    """Return the objects that are static parts of a form."""
    if isinstance(form, ContainerForm):
        return [x for f in form.forms.values() for x in shared_in(f)]
    if isinstance(form, TupleForm):
        return [x for f in form.parts for x in shared_in(f)]
    return [form.value] if isinstance(form, ConstForm) else []


def holds_containers(form: Form) -> bool:
    """Return True if a form has objects that are new in each iteration."""
    return isinstance(form, ContainerForm) or (isinstance(form, TupleForm) and any(map(holds_containers, form.parts)))


class UnsaidForm(Form):
    """The form of a setting that differs between iterations and is undefined until it is set again.

    ``marker`` replaces the value; reading it raises an error.
    """

    __slots__ = ("marker",)
    types = ()

    def __init__(self, marker: object):
        self.marker = marker

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnsaidForm) and self.marker is other.marker

    def __hash__(self) -> int:
        return hash((UnsaidForm, id(self.marker)))

    def take(self, value: object) -> list[SSAValue]:
        return []

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.marker

    def join(self, other: Form) -> Form:
        return self
