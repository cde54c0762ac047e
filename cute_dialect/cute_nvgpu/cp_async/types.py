"""Atom type of ``cp.async``: ``!cute_nvgpu.atom.simt_async_copy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType, parse_element, parse_word

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


class AsyncCopy(NamedTuple):
    """Parameters of the atom.

    ``cache`` is "always" (L1 and L2) or "global" (L2 only). ``bits`` is the size of one thread's access: 32, 64 or 128.
    """

    element: Attribute
    cache: str
    bits: int


@irdl_attr_definition
class SimtAsyncCopyType(Data[AsyncCopy], InstructionCopyType):
    """``!cute_nvgpu.atom.simt_async_copy<T, cache = always|global, N b>``: ``cp.async`` of 32, 64 or 128 bits.

    One thread copies from gmem to smem. Both addresses must be aligned to the width. ``cache = global`` (``.cg``,
    bypasses L1) requires 128 bits. A predicate has one flag per instruction; if the flag is false, the destination is
    zero-filled. Completion: ``cute_nvgpu.arch.cp_async_commit_group`` and ``cp_async_wait_group``.
    """

    name = "cute_nvgpu.atom.simt_async_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AsyncCopy:
        with parser.in_angle_brackets():
            element, natural = parse_element(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("cache")
            parser.parse_punctuation("=")
            cache = parse_word(parser, "cache mode", ("always", "global"))
            parser.parse_punctuation(",")
            at = parser.pos
            bits = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_keyword("b")
            widths = (32, 64, 128) if cache == "always" else (128,)
            if bits not in widths or bits % natural:
                wanted = "32, 64 or 128" if cache == "always" else "128"
                parser.raise_error(
                    f"expected {wanted} bits with cache = {cache}, a multiple of the element's {natural}, got {bits}",
                    at,
                    parser.pos,
                )
        return AsyncCopy(element, cache, bits)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        printer.print_string(f", cache = {self.data.cache}, {self.data.bits} b>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import find_cp_async  # late: start-up

        return find_cp_async(self.data.bits // 8, "ca" if self.data.cache == "always" else "cg")


ATTRS: list[type[Attribute]] = [SimtAsyncCopyType]
