"""The verifier: every op by itself, values before their uses, terminators; a concise error at each place.

xDSL's own ``op.verify()`` raises at the first violation with a dump of the module around it, and does not check
dominance.  Here each op whose types or properties are wrong is reported, at the op, in one line, but for those that use
the results of wrong ones; in each isolated op (each function) up to the first violation of structure or dominance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, BlockArgument, ErasedSSAValue, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, OptionalDef, VerificationContext
from xdsl.irdl.operations import irdl_op_verify_regions
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoMemoryEffect, NoTerminator
from xdsl.utils.exceptions import VerifyException

from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, limit_message, op_summary
from cute_dialect.ir.dominance import dominators as find_dominators
from cute_dialect.ir.parsing import one_line, op_name

MOST = 20
"""How many errors are reported at most."""


class VerifiedForms:
    """What earlier verifications found sound, so as not to ask again: forms of ops (class, types, properties).

    A form is looked for by the identity of its attributes first, which passes hand on from op to op: hashing types is
    most of what the equality of forms costs.
    """

    def __init__(self) -> None:
        self._sound: set[tuple[object, ...]] = set()
        self._identical: dict[tuple[object, ...], tuple[object, ...]] = {}
        """The same forms with identities in place of attributes; the attributes, so that their identities stay."""

    def holds(self, key: tuple[object, ...], attributes: tuple[object, ...]) -> bool:
        """Tell whether a form (see :func:`_form`) is among them."""
        if key in self._identical:
            return True
        if (*key[: len(key) - len(attributes)], *attributes) not in self._sound:
            return False
        self._identical[key] = attributes
        return True

    def add(self, key: tuple[object, ...], attributes: tuple[object, ...]) -> None:
        """Add a form."""
        self._identical[key] = attributes
        self._sound.add((*key[: len(key) - len(attributes)], *attributes))


class _Kind(NamedTuple):
    """What the verifier asks of a class of ops."""

    terminates: bool
    isolated: bool
    registered: bool
    by_form: bool
    """Types and properties alone decide whether an op without regions is sound: ops of this project but those that look
    at what defines their operands (``LOOKS_BACK``), and ops without effects."""
    in_parent: bool
    """As ``by_form``, but for the class of the op around it."""


_IN_PARENT = frozenset({"scf.yield"})
"""Terminators of which the verifier asks no more than where they stand."""


@lru_cache(maxsize=1024)
def _kind(op_class: type[Operation]) -> _Kind:
    terminates = op_class.has_trait(IsTerminator, value_if_unregistered=False)
    own = op_class.name.startswith(("cute.", "cute_nvgpu."))
    registered = not issubclass(op_class, UnregisteredOp)
    return _Kind(
        terminates=terminates,
        isolated=op_class.has_trait(IsolatedFromAbove, value_if_unregistered=False),
        registered=registered,
        by_form=registered
        and not terminates
        and (own or op_class.has_trait(NoMemoryEffect))
        and not getattr(op_class, "LOOKS_BACK", False),
        in_parent=op_class.name in _IN_PARENT,
    )


def verify(
    op: Operation, engine: DiagnosticEngine, *, show_op: bool = False, known: VerifiedForms | None = None
) -> bool:
    """Check ``op`` and all that is in it; report violations to ``engine``; give whether there were none.

    ``show_op`` attaches a note with the op as it is now: of use when passes have rewritten it, so that the source line
    does not show it any more.  ``known`` is shared by verifications of the same module after each pass.
    """
    before = engine.errors
    verifier = _Verifier(engine, show_op, known or VerifiedForms())
    try:
        verifier.op(op)
        if verifier.crash is not None and engine.errors == before:
            raise verifier.crash
    except Exception as e:
        message = limit_message(e)
        if message is None:
            raise
        engine.error(f"{message}, while verifying", op)
    return engine.errors == before


class _Verifier:
    def __init__(self, engine: DiagnosticEngine, show_op: bool, known: VerifiedForms):
        self._engine = engine
        self._show_op = show_op
        self._visible: set[int] = set()
        self._dominance: dict[Region, dict[Block, tuple[int, int]]] = {}
        self._doubtful: set[int] = set()
        """Results of ops that are wrong: what uses them is not asked, it may be right."""
        self._known = known
        self.crash: Exception | None = None
        """The first exception of a verifier that read a malformed op elsewhere, such as the function a launch names.
        It is our bug only if no error was reported."""

    def op(self, op: Operation) -> bool | None:
        """Check an op and its regions; False (and reported) if types or properties are wrong, of it or of an op in it;
        None if the structure is, so that what follows cannot be judged."""
        kind = _kind(type(op))
        operands = tuple(op.operands)
        message = None
        if not self._visible.issuperset(map(id, operands)):
            message = self._operands(op, operands)
        if message is None and (op.successor_uses or (op.next_op is None) != kind.terminates):
            message = _structure(op, kind)
        if message is not None:
            self._fail(op, message)
            return None
        regions, form = op.regions, None
        if regions:
            message = _itself(op)
            if message is not None:
                self._fail(op, message)
                return None
            whole = True
            for region in regions:
                for block in region.blocks:
                    message = _block(block)
                    if message is not None:
                        self._fail(op, message)
                        return None
                    inside = self._ops(block)
                    if inside is None:
                        return None
                    whole = whole and inside
            if not whole:
                return False
        elif (kind.by_form or kind.in_parent) and not op.attributes and not op.successor_uses:
            form = _form(op, kind, operands)
            if self._known.holds(*form):
                return True
        try:
            op.verify_()
        except VerifyException as e:
            return self._fail(op, one_line(str(e)))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
            self.crash = self.crash or e
            return False
        if form is not None:
            self._known.add(*form)
        return True

    def _ops(self, block: Block) -> bool | None:
        """Check the ops of a block, but those that use results of wrong ones: whether all are sound; None if the
        structure is not, or :data:`MOST` errors were found."""
        visible = self._visible
        here = [id(a) for a in block.args]
        visible.update(here)
        whole = True
        try:
            for child in block.ops:
                if self._doubtful and not self._doubtful.isdisjoint(map(id, child.operands)):
                    self._doubtful.update(map(id, child.results))
                else:
                    sound = self.op(child)
                    if not sound:
                        if (sound is None and not _kind(type(child)).isolated) or self._engine.errors >= MOST:
                            return None
                        self._doubtful.update(map(id, child.results))
                        whole = False
                defined = [id(r) for r in child.results]
                visible.update(defined)
                here += defined
        finally:
            visible.difference_update(here)
        return whole

    def _fail(self, op: Operation, message: str) -> bool:
        prefix = f"'{op_name(op)}' op "
        notes: list[Diagnostic] = []
        if self._show_op:
            notes.append(self._engine.note(f"see current operation: {op_summary(op)}", op, context=True))
        self._engine.error(message if message.startswith("'") else prefix + message, op, notes)
        return False

    # ------------------------------------------------------------------------------------------------------ dominance

    def _operands(self, op: Operation, operands: tuple[SSAValue, ...]) -> str | None:
        for i, value in enumerate(operands):
            if id(value) in self._visible:
                continue
            if isinstance(value, ErasedSSAValue):
                return f"operand #{i} was erased"
            message = self._dominates(value, op)
            if message is not None:
                return f"operand #{i} {message}"
        return None

    def _dominates(self, value: SSAValue, user: Operation) -> str | None:
        """Why ``value``, which was not met before in an open block, may not be used by ``user``; None if it may."""
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
            return "does not dominate this use"
        assert region is not None
        dominators = self._dominance.get(region)
        if dominators is None:
            dominators = self._dominance[region] = find_dominators(region)
        if block not in dominators:  # anything goes in a block that is never reached
            return None
        if isinstance(defined, Block) and defined in dominators:
            first, last = dominators[defined]
            if first <= dominators[block][0] <= last:
                return None
        return "does not dominate this use"


def _form(op: Operation, kind: _Kind, operands: tuple[SSAValue, ...]) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """The form of an op, with identities in place of attributes at its end, and the attributes."""
    properties, results = op.properties, op.results
    attributes = (*[o.type for o in operands], *[r.type for r in results], *properties.values())
    around = type(op.parent_op()) if kind.in_parent else None
    return (type(op), len(results), around, *properties, *map(id, attributes)), attributes


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


def _structure(op: Operation, kind: _Kind) -> str | None:
    """What is wrong with successors and terminators, seen from the op."""
    block = op.parent
    region = block.parent if block is not None else None
    last = op.next_op is None
    if op.successors:
        if block is None or region is None:
            # unreachable: a module that is verified holds each of its ops in a region
            return "has successors but is in no region"
        if not last:
            return "has successors, so it must be the last op of its block"
        for successor in op.successors:
            if successor.parent is not region:
                return "branches to a block of another region"
    if block is None or region is None or not kind.registered or last == kind.terminates:
        return None
    if kind.terminates:
        return "is a terminator, so it must be the last op of its block"
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
