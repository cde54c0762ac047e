"""Walk of ``cute-to-base``: maps the values of one function to lowered values, op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, div, divisibility
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, Payload, Swizzle
from cute_dialect.arch.targets import Target
from cute_dialect.dialect.memory_types import CoordTensorType, MemRefType, Ptr, element_bits
from cute_dialect.dialect.typed_values import bind, dynamic_leaves
from cute_dialect.dialect.types import CuteType
from cute_dialect.ir.dominance import reverse_post_order
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.emitter import BINARY, ArithEmitter, ssa_value
from cute_dialect.passes.lowering.bits import PossibleBits
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.folding import Widener, constant_of, fold_integer
from cute_dialect.passes.lowering.fragments import FragmentView, NeedsMemory, Registers
from cute_dialect.passes.lowering.printing import Formats
from cute_dialect.passes.lowering.types import Path, integer, leaf_paths, lowered


class SharingEmitter(ArithEmitter):
    """An emitter of address arithmetic that shares equal steps where they are visible."""

    def __init__(self, build: BaseBuilder):
        super().__init__(build.add, build.constant)
        self._build = build

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> SSAValue:
        op_class, properties = BINARY[op]
        operands = [self.value(a, width), self.value(b, width)]
        return self._build.once((op, *operands), lambda: make_op(op_class, operands, [integer(width)], properties))


class Lowering:
    """Lowers one function in a forward walk that maps old values to new ones."""

    def __init__(
        self,
        handler_of: Callable[[str], Handler | None],
        formats: Formats | None,
        device: bool,
        in_memory: frozenset[Operation],
        target: Target | None = None,
    ):
        self.handler_of = handler_of
        self.formats = formats
        self.device = device
        self.in_memory = in_memory
        self.target = target
        """The target; None if code for any target with the instructions is needed."""
        self.build = BaseBuilder(Block())
        self.emitter = SharingEmitter(self.build)
        self.widener = Widener()
        self.bits = PossibleBits()
        self.values: dict[SSAValue, SSAValue] = {}
        self.views: dict[SSAValue, FragmentView] = {}
        self.registers = Registers()
        self.blocks: dict[Block, Block] = {}
        self.entry: Block | None = None
        self.unrolling = 0
        self.copies = 1
        """Number of copies that the enclosing unrolled loops make."""
        self.smem: object = None
        """Shared memory of the kernel, set on first use (:mod:`.smem`)."""

    # -------------------------------------------------------------------------------------------------- the walk itself

    def symbol(self, op: Operation) -> Operation:
        """Lower a top-level op (a function, a global) and return the new op, which is not yet in a block.

        Raises PassError for a cute op, which must be in a function.
        """
        if op.name.startswith(("cute.", "cute_nvgpu.")):
            raise PassError(f"'{op.name}' is not in a function; move it into a func.func or gpu.func", op)
        holder = Block()
        self.build.block = holder
        self.lower(op)
        new = holder.last_op
        assert new is not None
        new.detach()
        return new

    def lower(self, op: Operation) -> None:
        """Lower an op with its handler, or else clone it, at the insertion point of :attr:`build`.

        Raises PassError.
        """
        self.build.location = op.location
        handler = self.handler_of(op.name)
        try:
            if handler is not None:
                handler(self, op)
            else:
                self.clone(op)
        except AlgebraError as e:
            raise PassError(f"cannot lower '{op.name}': {e}", op) from None

    def value(self, old: SSAValue) -> SSAValue:
        """Return the lowered value."""
        new = self.values.get(old)
        if new is None:
            if old in self.views:
                view = self.views[old]
                raise NeedsMemory(view.fragment.op, "its address is used by an op that needs memory")
            # unreachable: the verifier and earlier passes have rejected or lowered every such value
            raise PassError(f"a value of type {old.type} has no lowered form here", owner_op(old))
        return new

    def clone(self, op: Operation) -> Operation | None:
        """Clone an op with lowered operands and types; inside unrolled loops, integer ops on constants are folded."""
        if op.name.startswith(("cute.", "cute_nvgpu.")):
            raise PassError(f"'{op.name}' cannot be lowered here; run the earlier cute passes first", op)
        operands = [self.value(o) for o in op.operands]
        if self.unrolling:
            known = fold_integer(op, operands)
            if known is not None:
                self.values[op.results[0]] = self.build.constant(known, op.results[0].type)
                return None
        types = [lowered(r.type) for r in op.results]
        properties = {k: lowered_attribute(v) for k, v in op.properties.items()}
        if op.name.startswith("nvvm.convert."):
            properties = dict(op.properties)  # these types name the format of the numbers, not the type that holds them
        if op.attributes or op.successors or op.regions:
            new = type(op).create(
                operands=operands,
                result_types=types,
                properties=properties,
                attributes={k: lowered_attribute(v) for k, v in op.attributes.items()},
                successors=[self.blocks[b] for b in op.successors],
                regions=[Region() for _ in op.regions],
            )
        else:
            new = make_op(type(op), operands, types, properties)
        self.build.add(new)
        for old_region, new_region in zip(op.regions, new.regions):
            self.region(old_region, new_region)
        for old, fresh in zip(op.results, new.results):
            fresh.name_hint = old.name_hint
            self.values[old] = fresh
        return new

    def region(self, old: Region, new: Region) -> None:
        """Lower all blocks of a region."""
        self.rest_of_region(old, new, None)

    def rest_of_region(self, old: Region, new: Region, entry: Block | None) -> None:
        """Lower all reachable blocks of a region, in an order compatible with dominance.

        ``entry`` is the new first block if the caller has created it already.
        """
        order = reverse_post_order(old)
        reached = set(order)
        for block in old.blocks:
            if block not in reached or (block is order[0] and entry is not None):
                continue
            fresh = Block(arg_types=[lowered(a.type) for a in block.args])
            new.add_block(fresh)
            self.blocks[block] = fresh
            for a, b in zip(block.args, fresh.args):
                b.name_hint = a.name_hint
                self.values[a] = b
        for i, block in enumerate(order):
            if i:
                self._forget_across_blocks()
            with self.build.inside(self.blocks[block]):
                for op in block.ops:
                    self.lower(op)

    def _forget_across_blocks(self) -> None:
        # With a control-flow graph, the state of a fragment is known only within one block.
        for fragment in self.registers.cells:
            raise NeedsMemory(fragment.op, "it lives across the blocks of a control-flow graph")

    # ------------------------------------------------------------------------------------------------- leaves, offsets

    def leaves(self, ssa: SSAValue, payload: Payload, paths: Sequence[Path]) -> list[SSAValue]:
        """Extract the dynamic leaves of ``payload`` from the lowered value, at ``paths``."""
        new = self.value(ssa)
        return [self.build.part(new, p, integer(d.width)) for p, d in zip(paths, dynamic_leaves(payload))]

    def bound(self, ssa: SSAValue, payload: Payload | None = None, paths: Sequence[Path] | None = None) -> Payload:
        """Return the payload of a value with its dynamic leaves bound to lowered values; constants become static.

        Use it for address computation only, where no type depends on the result.
        """
        t = ssa.type
        if payload is None:
            assert isinstance(t, CuteType)
            payload = t.data
        found = dynamic_leaves(payload)
        if not found:
            return payload
        values = self.leaves(ssa, payload, leaf_paths(t) if paths is None else paths)
        bound: list[Leaf] = []
        for d, v in zip(found, values):
            known = constant_of(v)
            bound.append(Dyn(d.width, d.div or 1, v, self.emitter) if known is None else known)
        return bind(payload, bound)

    def ssa(self, leaf: Leaf, width: int = 32) -> SSAValue:
        """Return a leaf as an SSA value; a static leaf becomes a constant of ``width`` bits."""
        if isinstance(leaf, int):
            return self.build.constant(leaf, integer(width))
        return ssa_value(leaf)

    def tensor_layout(self, tensor: SSAValue) -> AnyLayout:
        """Return the layout of a tensor operand with bound dynamic leaves."""
        t = tensor.type
        assert isinstance(t, MemRefType | CoordTensorType)
        if is_static(t.layout):
            return t.layout
        paths = leaf_paths(t)
        if isinstance(t, CoordTensorType):
            paths = paths[len(dynamic_leaves(t.data.iter)) :]
        layout = self.bound(tensor, t.layout, paths)
        assert isinstance(layout, Layout | ComposedLayout)
        return layout

    def address(self, base: SSAValue, p: Ptr, offset: Leaf, *, small: bool) -> SSAValue:
        """Return the pointer ``offset`` elements after ``base``; the offset has 64 bits unless ``small`` is set."""
        bits, unit = element_bits(p.element), p.space.unit_bits
        memory = memory_type(p.element)
        if bits < unit:
            per_unit = unit // bits
            if divisibility(offset) % per_unit:
                where = "bytes" if unit == 8 else f"{unit}-bit columns"
                raise AlgebraError(
                    f"expected an offset of whole {where} for elements of {bits} bits (a multiple of {per_unit}), "
                    f"got {offset if isinstance(offset, int) else f'?{{div={divisibility(offset)}}}'}"
                )
            offset, memory = div(offset, per_unit), i8
        elif unit > 8:
            memory = i8
        index: int | SSAValue
        if isinstance(offset, int):
            index = offset
        else:
            value = ssa_value(offset)
            index = self.widener.widened(value) if p.space.wide_offsets and not small else value
        return self.build.gep(base, index, memory)

    def swizzled(self, address: SSAValue, swizzle: Swizzle | None) -> SSAValue:
        """Return the address that a swizzled pointer refers to."""
        if swizzle is None:
            return address
        from cute_dialect.passes.lowering.swizzling import swizzled_address  # late: start-up

        return swizzled_address(self, address, swizzle)


def memory_type(element: Attribute) -> Attribute:
    """Return the type of an element in memory: the lowered type, and ``i8`` for ``i1``."""
    return i8 if element == i1 else lowered(element)


def lowered_attribute(attribute: Attribute) -> Attribute:
    """Lower a type attribute; other attributes are unchanged."""
    return lowered(attribute) if isinstance(attribute, TypeAttribute) else attribute


def owner_op(value: SSAValue) -> Operation | None:
    """Return the op that defines a value; for a block argument, the parent op of the block."""
    owner = value.owner
    return owner if isinstance(owner, Operation) else owner.parent_op()


Handler = Callable[[Lowering, Operation], None]
