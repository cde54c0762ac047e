"""Verifier: checks each op, dominance and terminators, and reports one short error per violation.

xDSL's ``op.verify()`` raises at the first violation with a dump of the enclosing module, and does not check dominance.
This verifier reports every op with wrong types or properties on one line, except users of the results of invalid ops.
Within each isolated op, such as a function, it stops at the first violation of structure or dominance.
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
"""Maximum number of errors that are reported."""


class VerifiedForms:
    """Cache of verified forms of ops (class, types, properties).

    A form is looked up by the identity of its attributes first.  Passes propagate attributes from op to op, so this
    lookup usually succeeds and avoids the cost of hashing types.
    """

    def __init__(self) -> None:
        self._sound: set[tuple[object, ...]] = set()
        self._identical: dict[tuple[object, ...], tuple[object, ...]] = {}
        """Forms with identities in place of attributes -> the attributes, which keeps the identities valid."""

    def holds(self, key: tuple[object, ...], attributes: tuple[object, ...]) -> bool:
        """Return True if a form (see :func:`_form`) is in the cache."""
        if key in self._identical:
            return True
        if (*key[: len(key) - len(attributes)], *attributes) not in self._sound:
            return False
        self._identical[key] = attributes
        return True

    def add(self, key: tuple[object, ...], attributes: tuple[object, ...]) -> None:
        """Add a form to the cache."""
        self._identical[key] = attributes
        self._sound.add((*key[: len(key) - len(attributes)], *attributes))


class _Kind(NamedTuple):
    """Properties of a class of ops that the verifier needs."""

    terminates: bool
    isolated: bool
    registered: bool
    by_form: bool
    """True if types and properties alone decide whether an op without regions is valid: ops of this project, except
    those that inspect the definitions of their operands (``LOOKS_BACK``), and ops without effects."""
    in_parent: bool
    """True if the class of the enclosing op decides as well."""


_IN_PARENT = frozenset({"scf.yield"})
"""Terminators whose verifiers depend only on the enclosing op."""


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
    """Verify ``op`` and all nested ops, and return True if there are no violations.

    Args:
        op: op to verify.
        engine: receives the violations.
        show_op: attach a note with the current form of the op, for ops that passes have rewritten and that no longer
            match the source line.
        known: cache, shared by the verifications of one module after each pass.
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
        """Results of invalid ops.  Their users are not checked, because the users may be correct."""
        self._known = known
        self.crash: Exception | None = None
        """The first exception of a verifier that read another malformed op, such as the function a launch names.
        It is a bug of ours only if no error was reported."""

    def op(self, op: Operation) -> bool | None:
        """Check an op and its regions.

        The result is False if types or properties of the op or of a nested op are invalid, which has been reported. It
        is None if the structure is invalid, so that the ops after it cannot be checked.
        """
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
        """Check the ops of a block, except users of the results of invalid ops, and return True if all are valid.

        The result is None if the structure is invalid, or :data:`MOST` errors have been reported.
        """
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
        """Return the reason why ``user`` may not use ``value``, or None if it may.  No open block defines ``value``."""
        defined = value.owner if isinstance(value, BlockArgument) else value.owner.parent  # pyright: ignore
        if defined is None:
            return "is defined by an op outside any block"
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
            return "is defined in a region that does not contain this use"
        if isinstance(region.parent if region else None, ModuleOp):
            return None  # The order of ops does not matter in a graph region.
        if block is defined:
            return "does not dominate this use"
        assert region is not None
        dominators = self._dominance.get(region)
        if dominators is None:
            dominators = self._dominance[region] = find_dominators(region)
        if block not in dominators:  # An unreachable block is not checked.
            return None
        if isinstance(defined, Block) and defined in dominators:
            first, last = dominators[defined]
            if first <= dominators[block][0] <= last:
                return None
        return "does not dominate this use"


def _form(op: Operation, kind: _Kind, operands: tuple[SSAValue, ...]) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return the form of an op, ending with the ids of its attributes, and the attributes themselves."""
    properties, results = op.properties, op.results
    attributes = (*[o.type for o in operands], *[r.type for r in results], *properties.values())
    around = type(op.parent_op()) if kind.in_parent else None
    return (type(op), len(results), around, *properties, *map(id, attributes)), attributes


def _itself(op: Operation) -> str | None:
    """Return the first violation in the properties and regions of an op, ignoring the contents of the regions.

    It is checked before the regions, as in upstream, because verifiers of nested ops query the enclosing op:
    ``func.return`` needs the type of the function.
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
    """Return the first violation in the successors of an op and in its position as a terminator."""
    block = op.parent
    region = block.parent if block is not None else None
    last = op.next_op is None
    if op.successors:
        if block is None or region is None:
            # unreachable: every op of a verified module is in a region
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
    """Return the violation if a block is empty but needs a terminator."""
    if block.first_op is not None:
        return None
    parent = block.parent_op()
    if parent is None or parent.has_trait(NoTerminator, value_if_unregistered=True):
        return None
    return "contains an empty block; a block must end with a terminator"
