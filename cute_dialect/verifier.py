"""The verifier: every op by itself, values before their uses, terminators; a concise error at each place.

xDSL's own ``op.verify()`` raises at the first violation with a dump of the module around it, and does not check
dominance.  Here the first violation in each isolated op (each function) is reported, at the op, in one line.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, BlockArgument, ErasedSSAValue, Operation, OpResult, Region, SSAValue
from xdsl.irdl import IRDLOperation, OptionalDef, VerificationContext
from xdsl.irdl.operations import irdl_op_verify_regions
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.diagnostics import Diagnostic, DiagnosticEngine, op_summary
from cute_dialect.parsing import one_line, op_name


class Known:
    """What earlier verifications found sound: forms of pure ops (class, types, properties), so as not to ask again."""

    def __init__(self) -> None:
        self.simple: dict[type[Operation], bool] = {}
        self.sound: set[tuple[object, ...]] = set()


def verify(op: Operation, engine: DiagnosticEngine, *, show_op: bool = False, known: Known | None = None) -> bool:
    """Check ``op`` and all that is in it; report violations to ``engine``; give whether there were none.

    ``show_op`` attaches a note with the op as it is now: of use when passes have rewritten it, so that the source line
    does not show it any more.  ``known`` is shared by verifications of the same module after each pass.
    """
    before = engine.errors
    _Verifier(engine, show_op, known or Known()).op(op)
    return engine.errors == before


class _Verifier:
    def __init__(self, engine: DiagnosticEngine, show_op: bool, known: Known):
        self._engine = engine
        self._show_op = show_op
        self._seen: set[Operation] = set()
        self._dominance: dict[Region, dict[Block, set[Block]]] = {}
        self._simple = known.simple
        self._sound = known.sound

    def op(self, op: Operation) -> bool:
        """Check an op and its regions; False (and reported) at the first violation, unless an isolated op bounds it."""
        message = self._operands(op) or _structure(op)
        if message is not None:
            return self._fail(op, message)
        whole = True
        message = _itself(op) if op.regions else None
        if message is not None:
            return self._fail(op, message)
        for region in op.regions:
            for block in region.blocks:
                message = _block(block)
                if message is not None:
                    return self._fail(op, message)
                for child in block.ops:
                    if not self.op(child):
                        if not child.has_trait(IsolatedFromAbove, value_if_unregistered=False):
                            return False
                        whole = False
                    self._seen.add(child)
        if not whole:
            return False
        signature = self._signature(op)
        if signature is not None and signature in self._sound:
            return True
        try:
            op.verify_()
        except VerifyException as e:
            return self._fail(op, one_line(str(e)))
        if signature is not None:
            self._sound.add(signature)
        return True

    def _signature(self, op: Operation) -> tuple[object, ...] | None:
        """What alone decides whether a pure op without regions is sound: its class, types and properties."""
        kind = type(op)
        simple = self._simple.get(kind)
        if simple is None:
            simple = self._simple[kind] = (
                not isinstance(op, UnregisteredOp) and op.has_trait(Pure) and not op.has_trait(IsTerminator)
            )
        if not simple or op.regions or op.successors or op.attributes:
            return None
        types = (*[o.type for o in op.operands], *[r.type for r in op.results])
        return (kind, len(op.results), types, tuple(op.properties.items()))

    def _fail(self, op: Operation, message: str) -> bool:
        prefix = f"'{op_name(op)}' op "
        notes: list[Diagnostic] = []
        if self._show_op:
            notes.append(self._engine.note(f"see current operation: {op_summary(op)}", op, context=True))
        self._engine.error(message if message.startswith("'") else prefix + message, op, notes)
        return False

    # ------------------------------------------------------------------------------------------------------ dominance

    def _operands(self, op: Operation) -> str | None:
        for i, value in enumerate(op.operands):
            if isinstance(value, ErasedSSAValue):
                return f"operand #{i} was erased"
            if not (isinstance(value, OpResult) and value.op in self._seen and value.op.parent is op.parent):
                message = self._dominates(value, op)
                if message is not None:
                    return f"operand #{i} {message}"
        return None

    def _dominates(self, value: SSAValue, user: Operation) -> str | None:
        """Why ``value`` may not be used by ``user``; None if it may."""
        defined = value.owner if isinstance(value, BlockArgument) else value.owner.parent  # pyright: ignore
        if defined is None:
            return "is defined by an op that is in no block"
        region = defined.parent
        assert region is None or isinstance(region, Region)
        here: Operation | None = user
        block = user.parent
        while block is not None and block.parent is not region:
            here = block.parent_op()
            if here is None:
                break
            block = here.parent
        if here is None or block is None:
            return "is defined in a region that does not hold this use"
        if isinstance(region.parent if region else None, ModuleOp):
            return None  # a graph region: order does not matter
        if block is defined:
            if isinstance(value, BlockArgument) or value.owner in self._seen:
                return None
            return "does not dominate this use"
        assert region is not None
        dominators = self._dominance.get(region)
        if dominators is None:
            dominators = self._dominance[region] = _dominators(region)
        if block not in dominators or defined in dominators[block]:  # anything goes in a block that is never reached
            return None
        return "does not dominate this use"


def _dominators(region: Region) -> dict[Block, set[Block]]:
    """For each block of the region that can be reached: the blocks (itself among them) that dominate it."""
    entry = region.first_block
    assert entry is not None
    order: list[Block] = []
    predecessors: dict[Block, list[Block]] = {entry: []}
    work = [entry]
    while work:
        block = work.pop()
        order.append(block)
        for successor in block.last_op.successors if block.last_op is not None else ():
            if successor not in predecessors:
                predecessors[successor] = []
                work.append(successor)
            predecessors[successor].append(block)
    out = {block: set(order) for block in order}
    out[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set[Block].intersection(*(out[p] for p in predecessors[block])) | {block}
            changed |= new != out[block]
            out[block] = new
    return out


def _itself(op: Operation) -> str | None:
    """What is wrong with properties and regions of an op, as far as what is in the regions does not matter.

    The verifiers of ops in a region ask the op around them (``func.return`` for the function's type), so this comes
    first, as in upstream.
    """
    try:
        if isinstance(op, IRDLOperation):
            definition, context = op.get_irdl_definition(), VerificationContext()
            irdl_op_verify_regions(op, definition, context)
            for name, declared in definition.properties.items():
                found = op.properties.get(name)
                if found is not None:
                    declared.constr.verify(found, context)
                elif not isinstance(declared, OptionalDef):
                    return f"requires the property '{name}'"
        else:
            check: Callable[[], None] | None = getattr(op, "verify_itself", None)
            if check is not None:
                check()
    except VerifyException as e:
        return one_line(str(e))
    return None


def _structure(op: Operation) -> str | None:
    """What is wrong with successors and terminators, seen from the op."""
    block = op.parent
    region = block.parent if block is not None else None
    if op.successors:
        if block is None or region is None:
            return "has successors but is in no region"
        if block.last_op is not op:
            return "has successors, so it must be the last op of its block"
        for successor in op.successors:
            if successor.parent is not region:
                return "branches to a block of another region"
    if block is None or region is None or isinstance(op, UnregisteredOp):
        return None
    if op.has_trait(IsTerminator):
        if block.last_op is not op:
            return "is a terminator, so it must be the last op of its block"
    elif block.last_op is op:
        parent = region.parent
        if region.first_block is not region.last_block:
            return "ends a block, but is not a terminator"
        if parent is not None and not parent.has_trait(NoTerminator, value_if_unregistered=True):
            return f"ends the block of '{op_name(parent)}', but is not a terminator"
    return None


def _block(block: Block) -> str | None:
    """What is wrong with an empty block, seen from the op that holds it."""
    if block.first_op is not None:
        return None
    parent = block.parent_op()
    if parent is None or parent.has_trait(NoTerminator, value_if_unregistered=True):
        return None
    return "holds an empty block: it must end with a terminator"
