# ruff: noqa: B006, B007, B008, B018, B023, E731, RUF046, SIM102, UP028  (the oddities are what is tested)
"""State changed in run-time branches and loops: captured variables, attributes of classes, objects and modules.

Each function changes state in a region and returns it afterwards.  The traced kernel must agree with Python.
"""

from __future__ import annotations

import collections
import contextvars
import enum
import functools
import threading
import types
from collections.abc import Callable

import numpy as np
import pytest
from traced import Traced

import cute_dialect.lang as cute
from cute_dialect.lang.values.dtypes import Int32

settings = types.ModuleType("settings")


class Glob:
    n = 0


class It:
    def __init__(self):
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.i += 1
        return self.i

    def bump(self):
        self.i = 7


def branch(v: int) -> int:
    z = 0
    if v > 3:

        def g():
            nonlocal z
            z = 7

        g()
    return z


def alike_on_both_sides_of_an_expression(v: int) -> int:
    xs, box = [v], It()

    def grow(x):
        xs.append(x)
        box.i = 1
        return x

    y = grow(v) if v > 3 else grow(v + 1)
    return y + xs[1] * 10 + box.i * 100


def in_a_for(v: int) -> int:
    z = 0
    for i in range(v):

        def g():
            nonlocal z
            z = z + i

        g()
    return z


def in_a_while(v: int) -> int:
    z = 0
    i = 0
    while i < v:

        def g():
            nonlocal z
            z = z + 2

        g()
        i += 1
    return z


def static_in(v: int) -> int:
    z = 0
    if v > 3:
        for i in range(3):

            def g():
                nonlocal z
                z += i

            g()
    return z


def in_a_class(v: int) -> int:
    z = 0
    if v > 3:

        class C:
            def m(self):
                nonlocal z
                z = 7

        C().m()
    return z


def class_body(v: int) -> int:
    z = 0
    if v > 3:

        class C:
            nonlocal z
            z = 7

    return z


def nested(v: int) -> int:
    z = 0
    if v > 1:
        if v > 3:

            def g():

                def h():
                    nonlocal z
                    z = 7

                h()

            g()
    return z


def free(v: int) -> int:
    z = 0

    def outer():
        if v > 3:

            def g():
                nonlocal z
                z = 7

            g()

    outer()
    return z


def free_unknown(v: int) -> int:
    z = 0

    def outer():

        def mid():
            if v > 3:

                def g():
                    nonlocal z
                    z = 7

                g()

        mid()

    outer()
    return z


def own(v: int) -> int:
    z = 0
    if v > 3:

        def g():
            z = 1

            def h():
                nonlocal z
                z = 7

            h()
            return z

        g()
    return z


def lambda_default(v: int) -> int:
    z = 0

    def g(u):
        nonlocal z
        z = u
        return u

    if v > 3:
        f = lambda q=g(7): q
        f()
    return z


def comprehension(v: int) -> int:
    z = 0
    if v > 3:

        def g(u):
            nonlocal z
            z += u
            return u

        [g(u) for u in (1, 2)]
    return z


def in_a_conditional_expression(v: int) -> int:
    z = 0

    def g():
        nonlocal z
        z = 7
        return 1

    w = g() if v > 3 else 0
    return z + w


def pick_in(v: int) -> int:
    z = 0

    def run():

        def g():
            nonlocal z
            z = 7
            return 1

        return g() if v > 3 else 0

    w = run()
    return z + w


def in_and(v: int) -> int:
    z = 0

    def g():
        nonlocal z
        z = 7
        return True

    w = v > 3 and g()
    return z + (1 if w else 0)


def method_outside(v: int) -> int:
    z = 0

    class C:
        def m(self):
            nonlocal z
            z = 7

    c = C()
    if v > 3:
        c.m()
    return z


def class_outside(v: int) -> int:
    z = 0

    class C:
        def __init__(self):
            nonlocal z
            z = 7

    if v > 3:
        C()
    return z


def static_method(v: int) -> int:
    z = 0

    class C:
        @staticmethod
        def m():
            nonlocal z
            z = 7

    if v > 3:
        C.m()
    return z


def by_property(v: int) -> int:
    z = 0

    class C:
        @property
        def m(self):
            nonlocal z
            z = 7
            return 1

    c = C()
    if v > 3:
        c.m
    return z


def by_operator(v: int) -> int:
    z = 0

    class C:
        def __add__(self, o):
            nonlocal z
            z = 7
            return 1

    c = C()
    if v > 3:
        c + 1
    return z


def class_attribute(v: int) -> int:

    class C:
        n = 0

    if v > 3:
        C.n = 7
    return C.n


def class_attribute_by_instance(v: int) -> int:

    class C:
        n = 0

    c = C()
    if v > 3:
        type(c).n = 7
    return C.n


def global_class(v: int) -> int:
    Glob.n = 0
    if v > 3:
        Glob.n = 7
    r = Glob.n
    return r


def function_attribute(v: int) -> int:

    def g():
        return 1

    g.n = 0
    if v > 3:
        g.n = 7
    return g.n


def module_table(v: int) -> int:
    settings.table[0] = 0
    if v > 3:
        settings.table[0] = 7
    return settings.table[0]


def module_class(v: int) -> int:
    settings.K.n = 0
    if v > 3:
        settings.K.n = 7
    return settings.K.n


def user_iterator(v: int) -> int:
    it = It()
    if v > 3:
        it.bump()
    return it.i


def user_iterator_next(v: int) -> int:
    it = It()
    if v > 3:
        it.__next__()
    return it.i


def generator(v: int) -> int:
    z = 0
    if v > 3:

        def g():
            nonlocal z
            for i in range(3):
                z += 1
                yield i

        for i in g():
            z += i
    return z


def generator_outside(v: int) -> int:
    z = 0

    def g():
        nonlocal z
        for i in range(3):
            z += 1
            yield i

    if v > 3:
        for i in g():
            z += i
    return z


def gen_consumer(v: int) -> int:
    z = 0

    def g():
        for i in range(v):
            yield i

    for i in g():

        def h():
            nonlocal z
            z += i

        h()
    return z


def in_with(v: int) -> int:
    z = 0

    class M:
        def __enter__(self):
            nonlocal z
            z = 7

        def __exit__(self, *a):
            pass

    m = M()
    if v > 3:
        with m:
            pass
    return z


def bound_outside(v: int) -> int:
    z = [0]
    f = z.__setitem__

    def run():
        if v > 3:
            f(0, 7)

    run()
    return z[0]


def bound_only(v: int) -> int:

    def make():
        z = [0]
        return (z.__setitem__, z.__getitem__)

    s, g = make()
    if v > 3:
        s(0, 7)
    return g(0)


def default_arg(v: int) -> int:

    def g(acc=[0]):
        acc[0] += 3
        return acc[0]

    if v > 3:
        g()
    return g()


def kw_default(v: int) -> int:

    def g(*, acc=[0]):
        acc[0] += 3
        return acc[0]

    if v > 3:
        g()
    return g()


def by_super(v: int) -> int:
    z = 0

    class B:
        def m(self):
            nonlocal z
            z = 7

    class C(B):
        def m(self):
            super().m()

    c = C()
    if v > 3:
        c.m()
    return z


def lru(v: int) -> int:
    z = 0

    @functools.wraps(lambda: 1)
    def g():
        nonlocal z
        z = 7

    p = functools.partial(g)
    if v > 3:
        p()
    return z


def lru_cache(v: int) -> int:

    @functools.lru_cache
    def tab(n):
        return [0] * n

    tab(1)
    if v > 3:
        tab(1)[0] = 7
    return tab(1)[0]


def deleted(v: int) -> int:
    z = 1
    if v > 3:

        def g():
            nonlocal z
            del z

        g()
        z = 5
    return z


def unbound(v: int) -> int:
    if v > 3:

        def g():
            nonlocal z
            z = 7

        g()
    else:
        z = 1
    return z


def in_try(v: int) -> int:
    z = 0
    try:
        if v > 3:

            def g():
                nonlocal z
                z = 7

            g()
    finally:
        z = z + 1
    return z


def in_match(v: int) -> int:
    z = 0
    match v:
        case 5:

            def g():
                nonlocal z
                z = 7

            g()
    return z


def decor(v: int) -> int:
    z = 0

    def dec(f):
        nonlocal z
        z = 7
        return f

    if v > 3:

        @dec
        def g():
            pass

    return z


def meta(v: int) -> int:
    z = 0

    class B:
        def __init_subclass__(cls):
            nonlocal z
            z = 7

    if v > 3:

        class C(B):
            pass

    return z


def setattr_cls(v: int) -> int:

    class C:
        pass

    C.n = 0
    if v > 3:
        C.n = 7
    return C.n


def nested_def_in_elif(v: int) -> int:
    z = 0
    if v > 7:
        z = 1
    elif v > 3:

        def g():
            nonlocal z
            z = 7

        g()
    else:
        z = z
    return z


def genexp(v: int) -> int:
    z = 0
    if v > 3:

        def g(u):
            nonlocal z
            z += u
            return u

        sum(g(u) for u in (1, 2))
    return z


def private(v: int) -> int:

    class P:
        def run(self, v):
            __z = 0
            if v > 3:

                def g():
                    nonlocal __z
                    __z = 7

                g()
            return __z

    return P().run(v)


def descr_slots(v: int) -> int:

    class S:
        __slots__ = ("n",)

    s = S()
    s.n = 0
    if v > 3:

        def g():
            s.n = 7

        g()
    return s.n


def namespace(v: int) -> int:
    import types

    f = types.SimpleNamespace(n=0)
    if v > 3:
        f.n = 7
    return f.n


def chainmap(v: int) -> int:
    f = collections.ChainMap({"n": 0})
    if v > 3:
        f["n"] = 7
    return f["n"]


def dictview(v: int) -> int:
    d = {"n": [0]}
    vals = d.values()

    def run():
        if v > 3:
            for x in vals:
                x[0] = 7

    run()
    return d["n"][0]


def mappingproxy(v: int) -> int:
    import types

    d = {"n": [0]}
    p = types.MappingProxyType(d)
    del d
    if v > 3:
        p["n"][0] = 7
    return p["n"][0]


def gen_read_list(v: int) -> int:
    z = [0]

    def g(cb):
        for i in range(v):
            yield cb()

    for x in g(lambda: z[0]):
        z[0] += x + 1
    return z[0]


def gen_read_static(v: int) -> int:
    z = v

    def g():
        for i in range(3):
            yield (i + z)

    for x in g():
        z += x + 1
    return z


def exc(v: int) -> int:
    e = ValueError()
    e.n = 0
    if v > 3:
        e.n = 7
    return e.n


def listsub(v: int) -> int:

    class L(list):
        pass

    e = L()
    e.n = 0
    if v > 3:
        e.n = 7
    return e.n


def and2(v: int) -> int:
    z = 0

    def g():
        nonlocal z
        z = 7
        return v > 1

    if v > 3 and g():
        z += 1
    return z


def kw(v: int) -> int:
    z = 0
    if v > 3:

        def g(*, u=1, **kw):
            nonlocal z
            z = u + kw["r"]

        g(r=2)
    return z


def while_nested_class(v: int) -> int:
    z = 0
    while z < v:

        class C:
            def __iadd__(self, o):
                nonlocal z
                z += o
                return self

        c = C()
        c += 2
    return z


def recursive_closure(v: int) -> int:
    z = 0
    if v > 3:

        def walk(n):
            nonlocal z
            z += n
            if n > 0:
                walk(n - 1)

        walk(3)
    return z


def two_levels(v: int) -> int:
    z = 0
    y = 1
    if v > 1:

        def g():
            nonlocal z, y
            if v > 4:

                def h():
                    nonlocal z, y
                    z, y = (y + 2, z + 3)

                h()
            else:
                y = 5

        g()
    return z * 10 + y


def del_in_branch(v: int) -> int:
    z = 1
    if v > 3:

        def g():
            nonlocal z
            del z
            z = 9

        g()
    return z


def param(v: int, z: int = 2) -> int:
    if v > 3:

        def g():
            nonlocal z
            z = 7

        g()
    return z


def star(v: int) -> int:

    def f(*args, k=3):
        if v > 3:

            def g():
                nonlocal args, k
                args = (1, 2)
                k = 5

            g()
        else:
            args = (v, v)
        return args[0] + k

    return f(4, 5)


def in_except(v: int) -> int:
    z = 0
    try:
        raise ValueError
    except ValueError:
        if v > 3:

            def g():
                nonlocal z
                z = 7

            g()
    return z


def imported(v: int) -> int:
    if v > 3:

        def g():
            nonlocal mm
            import math as mm

        g()
    import math as mm

    return int(mm.floor(2.5))


def for_else(v: int) -> int:
    z = 0
    for i in range(3):
        if i == v:
            break
    else:

        def g():
            nonlocal z
            z = 7

        g()
    return z


def jit_function(v: int) -> int:
    z = 0

    @cute.jit
    def g():
        nonlocal z
        z = 7

    if v > 3:
        g()
    return z


def a_list_in_a_loop_that_counts_down(v: int) -> int:
    z = [v, 0]
    for i in range(v, 0, -1):
        z[1] += i
    return z[1]


class Pair:
    __slots__ = ("__a",)

    def __init__(self, a):
        self.__a = a

    def put(self, a):
        self.__a = a

    def get(self):
        return self.__a


def private_slot(v: int) -> int:
    p, q = Pair(v), Pair([1])
    if v > 3:
        p.put(p.get() + 5)
    else:
        q.get()[0] = v
    return p.get() * 100 + q.get()[0]


def private_slot_in_a_loop(v: int) -> int:
    p = Pair(1)
    for _ in range(v):
        p.put(p.get() + 5)
    return p.get()


def private_slot_replaced(v: int) -> int:
    p = Pair(1)
    if v > 3:
        p = Pair(v)
    return p.get()


class Outer:
    __slots__ = ("a",)


class Inner(Outer):
    __slots__ = ("a",)


def repeated_slot(v: int) -> int:
    x = Inner()
    x.a = 1
    Outer.a.__set__(x, v)
    if v > 3:
        Outer.a.__set__(x, Outer.a.__get__(x) + 5)
    if v > 5:
        x.a = 3
    return Outer.a.__get__(x) * 10 + x.a


class SlottedList(list):
    __slots__ = ("x",)


def slotted_list(v: int) -> int:
    xs = SlottedList([1])
    xs.x = v
    if v > 3:
        xs[0] = xs[0] + xs.x
    if v > 5:
        xs = SlottedList([2])
        xs.x = 9
    return xs[0] * 10 + xs.x


class Queue(collections.deque):
    pass


def deque_subclass(v: int) -> int:
    xs = Queue([1, 2])
    xs.n = 0
    if v > 3:
        xs[0] = v
        xs.n = 3
    return xs[0] * 10 + xs.n


def dunder_class_attribute(v: int) -> int:
    class C:
        __scale__ = 1

    if v > 3:
        C.__scale__ = v
    return C.__scale__


class Mode(enum.Flag):
    A = 1
    B = 2


def enum_member(v: int) -> int:
    Mode.A.weight = 1
    if v > 3:
        Mode.A.weight = Mode.A.weight + v
        both = Mode.A | Mode.B
    else:
        both = ~Mode.A | Mode.A
    return Mode.A.weight * 10 + both.value


def exception_arguments(v: int) -> int:
    e = ValueError(1)
    if v > 3:
        e.args = (v,)
    return e.args[0]


def in_an_object_array(v: int) -> int:
    xs = np.empty(1, dtype=object)
    xs[0] = [v]
    if v > 3:
        xs[0][0] = xs[0][0] + 5
    return xs[0][0]


def in_a_context_variable(v: int) -> int:
    hidden = contextvars.ContextVar("hidden", default=None)
    hidden.set([1])
    if v > 3:
        hidden.get()[0] = v
    return hidden.get()[0]


def thread_local(v: int) -> int:
    held = threading.local()
    held.n = 1
    if v > 3:
        held.n = v
    return held.n


FUNCTIONS = [
    a_list_in_a_loop_that_counts_down,
    branch,
    alike_on_both_sides_of_an_expression,
    in_a_for,
    in_a_while,
    static_in,
    in_a_class,
    class_body,
    nested,
    free,
    free_unknown,
    own,
    lambda_default,
    comprehension,
    in_a_conditional_expression,
    pick_in,
    in_and,
    method_outside,
    class_outside,
    static_method,
    by_property,
    by_operator,
    class_attribute,
    class_attribute_by_instance,
    global_class,
    function_attribute,
    module_table,
    module_class,
    user_iterator,
    user_iterator_next,
    generator,
    generator_outside,
    gen_consumer,
    in_with,
    bound_outside,
    bound_only,
    default_arg,
    kw_default,
    by_super,
    lru,
    lru_cache,
    deleted,
    unbound,
    in_try,
    in_match,
    decor,
    meta,
    setattr_cls,
    nested_def_in_elif,
    genexp,
    private,
    descr_slots,
    namespace,
    chainmap,
    dictview,
    mappingproxy,
    gen_read_list,
    gen_read_static,
    exc,
    listsub,
    and2,
    kw,
    while_nested_class,
    recursive_closure,
    two_levels,
    del_in_branch,
    param,
    star,
    in_except,
    imported,
    for_else,
    private_slot,
    private_slot_in_a_loop,
    private_slot_replaced,
    repeated_slot,
    slotted_list,
    deque_subclass,
    dunder_class_attribute,
    enum_member,
    exception_arguments,
    in_an_object_array,
    in_a_context_variable,
    thread_local,
]


@pytest.fixture(autouse=True)
def fresh_settings() -> None:
    settings.table = [0, 0]
    settings.K = type("K", (), {"n": 0})
    settings.state = 0


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_match_python(function: Callable[[int], int], fresh_settings: None) -> None:
    traced = Traced(function, [Int32])
    for v in range(8):
        assert traced.run(v) == function(v), v


def test_of_a_jit_function() -> None:
    traced = Traced(jit_function, [Int32])
    assert [traced.run(v) for v in range(8)] == [0, 0, 0, 0, 7, 7, 7, 7]
