"""Kernels in Python: builds cute IR op by op, result types inferred, and prints it as text.

>>> b = Builder()
>>> with b.kernel("scale", {"x": '!cute.memref<f32, gmem, "128:1">'}, threads=128) as (x,):
...     value = b.load(x, b.thread_id())
...     b.store(x, b.thread_id(), value + value)
>>> "cute.memref.store" in b.text()
True

A :class:`Value` is an SSA value with Python's operators: ``+ - * // % & | ^ << >>`` and the comparisons (integers are
unsigned where that matters: ``//``, ``%``, ``>>``, ``<``; sizes, indices and thread numbers are all there is).  Python
numbers become constants of the other side's type, if they fit; two values must have one type.  ``==``, ``if``, ``and``
and all else that Python would decide while the kernel is built raises TypeError and says what to call.  Ops of every
registered dialect are made by their name with :meth:`Builder.op`; cute ops infer their results, and raise
``AlgebraError`` where they cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from cute_dialect.kernels.operands import arithmetic, check_alike, check_condition, comparison, number_for
from cute_dialect.kernels.values import Coordinate, Loop, Scalar, Value

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Block, Operation

__all__ = ["Builder"]


class Builder:
    """Builds one module: kernels in ``gpu.module @kernels``, host functions beside it."""

    def __init__(self) -> None:
        from cute_dialect.ir.context import make_context

        self.context = make_context("all")
        self._types: dict[str, Attribute] = {}
        self._constants: dict[tuple[Block, int, Attribute], Value] = {}
        self._block: Block | None = None
        self._entry: Block | None = None
        self.module: ModuleOp = self._parse(
            "module attributes {gpu.container_module} {\n  gpu.module @kernels {\n  }\n}\n"
        )
        self._device = next(o for o in self.module.walk() if o.name == "gpu.module").regions[0].block

    def _parse(self, text: str) -> ModuleOp:
        from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
        from cute_dialect.ir.parsing import parse_module

        engine = DiagnosticEngine(file="builder")
        module = parse_module(self.context, Source("builder", text), engine)
        if module is None:
            raise ValueError("\n".join(d.message for d in engine.seen) + "\n" + text)
        return module

    def type(self, text: str | Attribute) -> Attribute:
        """Return a type from its text."""
        if not isinstance(text, str):
            return text
        known = self._types.get(text)
        if known is None:
            from xdsl.parser import Parser

            known = self._types[text] = Parser(self.context, text).parse_attribute()
        return known

    def text(self, aliases: Mapping[str, str | Attribute] | None = None) -> str:
        """Return the module as text, types named by ``aliases`` where given."""
        from cute_dialect.ir.printing import ir_text

        names = {k: self.type(v) for k, v in (aliases or {}).items()}
        return ir_text(self.module, aliases=names, source_names=True)

    # ------------------------------------------------------------------------------------------------ functions

    @contextmanager
    def kernel(
        self,
        name: str,
        parameters: Mapping[str, str | Attribute],
        *,
        threads: int,
        cluster: tuple[int, int, int] | None = None,
        attributes: Sequence[str] = (),
    ) -> Generator[tuple[Value, ...]]:
        """Emit ``gpu.func @name`` for blocks of ``threads`` threads; gives its parameters."""
        attrs = [f"known_block_size = array<i32: {threads}, 1, 1>", *attributes]
        if cluster is not None:
            attrs.append(f"known_cluster_size = array<i32: {', '.join(map(str, cluster))}>")
        args = ", ".join(f"%{k}: {t}" for k, t in parameters.items())
        skeleton = self._parse(
            f"gpu.module @kernels {{\ngpu.func @{name}({args}) kernel attributes {{{', '.join(attrs)}}} {{\n"
            "gpu.return\n}\n}\n"
        )
        func = next(o for o in skeleton.walk() if o.name == "gpu.func")
        func.detach()
        self._device.add_op(func)
        with self._body(func) as values:
            yield values

    @contextmanager
    def host(
        self, name: str, parameters: Mapping[str, str | Attribute], *, fallback: str = ""
    ) -> Generator[tuple[Value, ...]]:
        """Emit ``func.func @name`` on the host; gives its parameters.  ``fallback``: the host function for other
        arrays.
        """
        args = ", ".join(f"%{k}: {t}" for k, t in parameters.items())
        more = f" attributes {{cute.fallback = @{fallback}}}" if fallback else ""
        skeleton = self._parse(f"func.func @{name}({args}){more} {{\nreturn\n}}\n")
        func = next(o for o in skeleton.walk() if o.name == "func.func")
        func.detach()
        self.module.body.block.add_op(func)
        with self._body(func) as values:
            yield values

    @contextmanager
    def _body(self, func: Operation) -> Generator[tuple[Value, ...]]:
        block = func.regions[0].block
        end = block.last_op
        assert end is not None
        end.detach()
        saved = self._block, self._entry
        self._block = self._entry = block
        yield tuple(Value(self, a) for a in block.args)
        block.add_op(end)
        self._block, self._entry = saved

    def launch(
        self,
        kernel: str,
        arguments: Sequence[Value],
        *,
        grid: Scalar | tuple[Scalar, Scalar, Scalar],
        threads: int,
        variants: Sequence[str] = (),
    ) -> None:
        """Emit ``gpu.launch_func`` of a kernel of this module."""
        from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, SymbolRefAttr, i32

        triple = grid if isinstance(grid, tuple) else (grid, 1, 1)
        sizes = [self._scalar(x) for x in (*triple, threads, 1, 1)]
        segments = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(arguments), 0]
        op = self._class("gpu.launch_func").create(
            operands=[v.ssa for v in (*sizes, *arguments)],
            properties={
                "kernel": SymbolRefAttr("kernels", [kernel]),
                "operandSegmentSizes": DenseArrayBase.from_list(i32, segments),
            },
            attributes={"cute.variants": ArrayAttr([SymbolRefAttr("kernels", [v]) for v in variants])}
            if variants
            else {},
        )
        self.add(op)

    # ------------------------------------------------------------------------------------------------------ ops

    def _class(self, name: str) -> type[Operation]:
        found = self.context.get_optional_op(name)
        if found is None:
            raise ValueError(f"there is no op '{name}'")
        return found

    def add(self, op: Operation) -> Operation:
        """Append an op."""
        assert self._block is not None, "outside of a function"
        self._block.add_op(op)
        return op

    def results(
        self,
        name: str,
        *operands: Scalar,
        types: Sequence[str | Attribute] | None = None,
        segments: Sequence[int] | None = None,
        **properties: Attribute | str | int | bool,
    ) -> tuple[Value, ...]:
        """Append the op ``name``; give its results.

        ``types``: those of its results where they are not inferred.  Properties are attributes, or their text, or
        integers (``i32``) and booleans.  ``segments``: ``operandSegmentSizes``.
        """
        return self._emit(name, operands, types, segments, properties)

    def _emit(
        self,
        name: str,
        operands: Sequence[Scalar],
        types: Sequence[str | Attribute] | None,
        segments: Sequence[int] | None,
        properties: Mapping[str, Attribute | str | int | bool],
    ) -> tuple[Value, ...]:
        from xdsl.dialects.builtin import DenseArrayBase, i32

        cls = self._class(name)
        values = [self._scalar(o).ssa for o in operands]
        props = {k: self._property(v) for k, v in properties.items()}
        if types is None:
            infer = getattr(cls, "infer_types", None)
            found: Iterable[Attribute] = infer([v.type for v in values], props) if infer is not None else ()
        else:
            found = [self.type(t) for t in types]
        if segments is not None:
            props["operandSegmentSizes"] = DenseArrayBase.from_list(i32, list(segments))
        op = cls.create(operands=values, result_types=list(found), properties=props)
        self.add(op)
        return tuple(Value(self, r) for r in op.results)

    def op(
        self,
        name: str,
        *operands: Scalar,
        type: str | Attribute | None = None,
        segments: Sequence[int] | None = None,
        **properties: Attribute | str | int | bool,
    ) -> Value:
        """Append an op with one result and give that; see :meth:`results`."""
        (value,) = self.results(
            name, *operands, types=None if type is None else [type], segments=segments, **properties
        )
        return value

    def do(self, name: str, *operands: Scalar, **properties: Attribute | str | int | bool) -> None:
        """Append an op without results."""
        self._emit(name, operands, None, None, properties)

    def arch(self, name: str, *operands: Scalar, **properties: Attribute | str | int | bool) -> Value:
        """Append a machine-level op ``cute_nvgpu.arch.<name>`` with one result."""
        (value,) = self._emit(f"cute_nvgpu.arch.{name}", operands, None, None, properties)
        return value

    def run(self, name: str, *operands: Scalar, **properties: Attribute | str | int | bool) -> None:
        """Append a machine-level op ``cute_nvgpu.arch.<name>`` without results."""
        self.do(f"cute_nvgpu.arch.{name}", *operands, **properties)

    def _property(self, x: Attribute | str | int | bool) -> Attribute:
        from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32

        if isinstance(x, bool):
            return BoolAttr.from_bool(x)
        if isinstance(x, int):
            return IntegerAttr(x, i32)
        return self.type(x)

    # ----------------------------------------------------------------------------------------------- arithmetic

    def constant(self, value: float, type: str | Attribute = "i32") -> Value:
        """Make a constant; integers of one kernel are shared, at its top."""
        from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType

        t = self.type(type)
        value = number_for(value, t)
        if self._entry is None:
            raise ValueError("outside of a function: constants are made inside `with builder.kernel(…)` or `host`")
        if isinstance(t, IntegerType | IndexType):
            value = int(value)
            kind = cast("Attribute", t)
            key = (self._entry, value, kind)
            known = self._constants.get(key)
            if known is None:
                op = self._class("arith.constant").create(
                    result_types=[kind], properties={"value": IntegerAttr(value, cast("IntegerType", kind))}
                )
                first = self._entry.first_op
                if first is None:
                    self._entry.add_op(op)
                else:
                    self._entry.insert_op_before(op, first)
                known = self._constants[key] = Value(self, op.results[0])
            return known
        return self.op("arith.constant", type=t, value=FloatAttr(float(value), cast("AnyFloat", t)))

    def _scalar(self, x: Scalar) -> Value:
        if isinstance(x, Value) and x.builder is not self:
            raise ValueError(f"{x!r} belongs to another builder")
        return x if isinstance(x, Value) else self.constant(x)

    def _pair(self, a: Scalar, b: Scalar) -> tuple[Value, Value]:
        """Return two values; a number becomes a constant of the other side's type."""
        left = a if isinstance(a, Value) else self.constant(a, b.type if isinstance(b, Value) else "i32")
        return left, b if isinstance(b, Value) else self.constant(b, left.type)

    def binary(self, name: str, a: Scalar, b: Scalar, *, fast: bool = False) -> Value:
        """Emit ``add sub mul div rem and or xor shl shr min max`` of two values, integers (unsigned) or floats."""
        left, right = self._pair(a, b)
        op_name, integer = arithmetic(name, left, right)
        properties: dict[str, Attribute] = {}
        if not integer:
            properties["fastmath"] = self.type("#arith.fastmath<contract>" if not fast else "#arith.fastmath<fast>")
        elif name in ("add", "sub", "mul", "shl"):
            properties["overflowFlags"] = self.type("#arith.overflow<none>")
        op = self._class(op_name).create(
            operands=[left.ssa, right.ssa], result_types=[left.type], properties=properties
        )
        self.add(op)
        return Value(self, op.results[0])

    def compare(self, predicate: str, a: Scalar, b: Scalar) -> Value:
        """Compare by a predicate of MLIR: of integers ``eq``, ``ult``, ``slt``, …, of floats ``oeq``, ``olt``, …"""
        left, right = self._pair(a, b)
        op_name, number = comparison(predicate, left, right)
        properties = {"predicate": self.type(f"{number} : i64")}
        if op_name == "arith.cmpf":
            properties["fastmath"] = self.type("#arith.fastmath<none>")
        return self._emit(op_name, [left, right], ["i1"], None, properties)[0]

    def select(self, condition: Value, a: Scalar, b: Scalar) -> Value:
        """Return ``condition ? a : b``"""
        check_condition(condition)
        left, right = self._pair(a, b)
        check_alike("select", left, right)
        return self.op("arith.select", condition, left, right, type=left.type)

    def minimum(self, a: Scalar, b: Scalar) -> Value:
        """Return the smaller one."""
        return self.binary("min", a, b)

    def ceil_div(self, a: Value, b: int) -> Value:
        """Return ``ceil(a / b)``"""
        return (a + (b - 1)) // b

    def to_i32(self, flag: Value) -> Value:
        """Return 0 or 1 of an ``i1``."""
        return self.op("arith.extui", flag, type="i32")

    # ------------------------------------------------------------------------------------------------- structure

    @contextmanager
    def for_(self, start: Scalar, stop: Scalar, step: Scalar = 1, carry: Sequence[Value] = ()) -> Generator[Loop]:
        """Emit ``scf.for`` over ``i32``; see :class:`Loop`."""
        from xdsl.ir import Block, Region

        if isinstance(step, int) and step < 1:
            raise ValueError(f"expected a positive step, got {step}")
        bounds = [self._scalar(x) for x in (start, stop, step)]
        for bound in bounds[1:]:
            check_alike("the bounds of a loop", bounds[0], bound)
        types = [v.type for v in carry]
        body = Block(arg_types=[bounds[0].type, *types])
        values = [Value(self, a) for a in body.args]
        loop = Loop(values[0], tuple(values[1:]))
        saved, self._block = self._block, body
        yield loop
        yielded = loop.yielded if loop.yielded is not None else ()
        if len(yielded) != len(types):
            raise ValueError(f"expected {len(types)} values for the next iteration, got {len(yielded)}")
        for v, first in zip(yielded, carry):
            check_alike("the next iteration's values", first, v)
        self.add(self._class("scf.yield").create(operands=[v.ssa for v in yielded]))
        self._block = saved
        op = self._class("scf.for").create(
            operands=[*(v.ssa for v in bounds), *(v.ssa for v in carry)], result_types=types, regions=[Region(body)]
        )
        self.add(op)
        loop.results = tuple(Value(self, r) for r in op.results)

    @contextmanager
    def while_(self) -> Generator[Callable[[Value], None]]:
        """Emit ``scf.while`` without values: what is emitted runs again as long as the condition, said last, holds."""
        from xdsl.ir import Block, Region

        before, after = Block(), Block([self._class("scf.yield").create()])
        conditions: list[Value] = []
        with self.at(before):
            yield conditions.append
            if len(conditions) != 1:
                raise ValueError(f"expected one condition to be said in a while_ loop, got {len(conditions)}")
            (condition,) = conditions
            check_condition(condition)
            self.add(self._class("scf.condition").create(operands=[condition.ssa]))
        self.add(self._class("scf.while").create(regions=[Region(before), Region(after)]))

    @contextmanager
    def if_(self, condition: Value) -> Generator[None]:
        """Emit ``scf.if`` without results."""
        with self.if_else(condition) as (then, _), then:
            yield

    @contextmanager
    def if_else(self, condition: Value) -> Generator[tuple[_Branch, _Branch]]:
        """Emit ``scf.if`` without results: gives its two branches, each to be entered with ``with``."""
        from xdsl.ir import Block, Region

        check_condition(condition)
        branches = (_Branch(self, Block()), _Branch(self, Block()))
        yield branches
        regions = [Region(branches[0].block), Region(branches[1].block) if branches[1].used else Region()]
        for branch in branches:
            if branch.used or branch is branches[0]:
                branch.block.add_op(self._class("scf.yield").create())
        self.add(self._class("scf.if").create(operands=[condition.ssa], regions=regions))

    @contextmanager
    def at(self, block: Block) -> Generator[None]:
        """Append to ``block``."""
        saved, self._block = self._block, block
        try:
            yield
        finally:
            self._block = saved

    # ---------------------------------------------------------------------------------------------- cute values

    def static(self, type: str | Attribute) -> Value:
        """Make ``cute.static`` of a type."""
        return self.op("cute.static", type=type)

    def layout(self, text: str) -> Value:
        """Make a static layout."""
        return self.static(f'!cute.layout<"{text}">')

    def tile(self, text: str) -> Value:
        """Make a static tile."""
        return self.static(f'!cute.tile<"{text}">')

    def coord(self, where: Coordinate) -> Value:
        """Make a coordinate."""
        return self._tree("coord", where)

    def int_tuple(self, what: Coordinate) -> Value:
        """Make an int tuple."""
        return self._tree("int_tuple", what)

    def shape(self, what: Coordinate) -> Value:
        """Make a shape."""
        return self._tree("shape", what)

    def stride(self, what: Coordinate) -> Value:
        """Make a stride."""
        return self._tree("stride", what)

    def _tree(self, kind: str, what: Coordinate) -> Value:
        found: list[Value] = []
        t = f'!cute.{kind}<"{_tree_text(what, found)}">'
        if not found:
            return self.static(t)
        return self.op(f"cute.make_{kind}", *found, type=t)

    def thread_id(self) -> Value:
        """Return ``tid.x``"""
        return self.op("nvvm.read.ptx.sreg.tid.x", type="i32")

    def block_id(self, dimension: str = "x") -> Value:
        """Return ``ctaid``"""
        return self.op(f"nvvm.read.ptx.sreg.ctaid.{dimension}", type="i32")

    def grid_size(self, dimension: str = "x") -> Value:
        """Return ``nctaid``"""
        return self.op(f"nvvm.read.ptx.sreg.nctaid.{dimension}", type="i32")

    # ------------------------------------------------------------------------------------------------- tensors

    def alloc_smem(self, type: str | Attribute) -> Value:
        """Allocate a tensor in shared memory."""
        return self.op("cute.memref.alloc_smem", type=type)

    def registers(self, type: str | Attribute) -> Value:
        """Allocate a register tensor."""
        return self.op("cute.memref.alloca", type=type)

    def fragment_like(self, tensor: Value, element: str | None = None) -> Value:
        """Allocate a register tensor of the shape of ``tensor``."""
        from cute_dialect.ops.memory import fragment_like

        inferred = fragment_like(tensor.type, None if element is None else self.type(element))
        return self.op("cute.make_fragment_like", tensor, type=inferred)

    def view(self, iterator: Value, layout: Value | str, type: str | Attribute | None = None) -> Value:
        """Make a tensor from an iterator and a layout."""
        return self.op(
            "cute.make_view", iterator, self.layout(layout) if isinstance(layout, str) else layout, type=type
        )

    def iterator(self, tensor: Value) -> Value:
        """Return the iterator of a tensor."""
        return self.op("cute.get_iter", tensor)

    def slice(self, tensor: Value, *where: Coordinate) -> Value:
        """Return ``tensor(where)``: ``None`` keeps a mode."""
        return self.op("cute.slice", tensor, self.coord(where[0] if len(where) == 1 else where))

    def local_tile(self, tensor: Value, tiler: str, where: Coordinate) -> Value:
        """Return the tile at a coordinate."""
        return self.op("cute.local_tile", tensor, self.tile(tiler), self.coord(where))

    def pointer(self, tensor: Value, offset: Scalar) -> Value:
        """Return the address of an element."""
        return self.op("cute.add_offset", self.iterator(tensor), self.int_tuple(offset))

    def load(self, tensor: Value, where: Coordinate) -> Value:
        """Load one element."""
        return self.op("cute.memref.load", tensor, self.coord(where))

    def store(self, tensor: Value, where: Coordinate, value: Value) -> None:
        """Write one element."""
        self.do("cute.memref.store", tensor, self.coord(where), value)

    def load_vec(self, tensor: Value) -> Value:
        """Load all elements as a vector."""
        return self.op("cute.memref.load_vec", tensor)

    def store_vec(self, value: Value, tensor: Value) -> None:
        """Write all elements from a vector."""
        self.do("cute.memref.store_vec", value, tensor)

    def atom(self, type: str | Attribute) -> Value:
        """Make an atom."""
        return self.op("cute.atom", type=type)

    def tiled_copy(self, type: str) -> Value:
        """Make a tiled copy."""
        from cute_dialect.memory_types import TiledCopyType

        t = self.type(type)
        assert isinstance(t, TiledCopyType)
        return self.op("cute.make_tiled_copy", self.atom(t.data.atom), type=t)

    def partition(self, side: str, tiled: Value, tensor: Value, thread: Scalar) -> Value:
        """Return a thread's part: ``side`` ``S`` or ``D`` of a tiled copy, ``A``, ``B`` or ``C`` of a tiled MMA."""
        kind = "copy" if side in "SD" else "mma"
        return self.op(f"cute.tiled.{kind}.partition_{side}", tiled, tensor, self.coord(thread))

    def copy(self, atom: Value, source: Value, destination: Value, pred: Value | None = None) -> None:
        """Emit ``cute.copy``"""
        operands = [atom, source, destination] + ([pred] if pred is not None else [])
        self.do("cute.copy", *operands)

    def gemm(self, mma: Value, d: Value, a: Value, b: Value, c: Value | None = None) -> None:
        """Emit ``d = a * b + c``, or ``a * b`` without ``c``."""
        operands = [mma, d, a, b] + ([c] if c is not None else [])
        self.do("cute.gemm", *operands)


class _Branch:
    """One branch of an ``scf.if``; ``with`` it, ops go there."""

    def __init__(self, builder: Builder, block: Block):
        self.builder = builder
        self.block = block
        self.used = False
        self._at = builder.at(block)

    def __enter__(self) -> None:
        self.used = True
        self._at.__enter__()

    def __exit__(self, *error: object) -> None:
        self._at.__exit__(None, None, None)


def _tree_text(what: Coordinate, found: list[Value]) -> str:
    if what is None:
        return "_"
    if isinstance(what, Value):
        from cute_dialect.memory_types import ConstrainedIntType

        found.append(what)
        t = what.type
        if isinstance(t, ConstrainedIntType):
            return f"?{{div={t.divisor}}}" if t.width == 32 else f"?{{i64 div={t.divisor}}}"
        return "?{i64}" if str(t) == "i64" else "?"
    if isinstance(what, tuple):
        return f"({','.join(_tree_text(x, found) for x in what)})"
    return str(what)
