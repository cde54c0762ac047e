"""Base of the plans of one GEMM: types and layouts, and operations that are constructed, compiled and shown.

:class:`MatrixPlan` is the base of ``op.Gemm`` and ``op.ScaledGemm``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import SIZES, checked_element, layout_name
from cute_dialect.op.epilogue.tracing import current
from cute_dialect.op.errors import DtypeError, LayoutError
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.plans.base import Settings
from cute_dialect.op.problems.operands import Kinds, Operands, Type, found_type, read
from cute_dialect.op.pycutlass.operation import GemmOperationUniversal
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.op.select.configurations import ampere_tiles
from cute_dialect.op.select.descriptions import (
    ALONE,
    GemmCoord,
    OpcodeClass,
    Split,
    Swizzle,
    TensorDescription,
    TileDescription,
)
from cute_dialect.op.select.plan_tiles import chosen, tiles_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.execute.arguments import Arguments

_RESULTS = {"f8E4M3FN": "bf16", "f8E5M2": "bf16", "i8": "i32", "ui8": "i32", "tf32": "f32"}
_TYPICAL = GemmCoord(4096, 4096, 4096)


class MatrixPlan(Settings):
    """A plan of GEMMs with fixed elements and layouts.  For the arguments see
    :class:`~cute_dialect.op.plans.gemm.Gemm`.

    Raises OpError.
    """

    @checks_keywords
    def __init__(
        self, A: object = None, B: object = None, C: object = None, D: object = None, *, element: object = None,
        layout: object = None, element_A: object = None, element_B: object = None, element_C: object = None,
        element_D: object = None, layout_A: object = None, layout_B: object = None, layout_C: object = None,
        layout_D: object = None, element_accumulator: object = None, element_compute: object = "f32",
        alpha: float = 1.0, beta: float = 0.0, chip: int | None = None, kernel_cc: int | None = None,
    ):  # fmt: skip
        a = _type(self.call, "A", A, element_A, element, layout_A, layout)
        b = _type(self.call, "B", B, element_B, element, layout_B, layout)
        void = element_C == "void"
        given = C is not None or element_C is not None or layout_C is not None
        c = None
        if not void and (given or (element is not None and layout is not None)):
            usual = element if element is not None else _RESULTS.get(a.element, a.element)
            c = _type(self.call, "C", C, element_C, usual, layout_C, layout if layout is not None else "row")
        usual = c.element if c is not None else element if element is not None else _RESULTS.get(a.element, a.element)
        d = _type(self.call, "D", D, element_D, usual, layout_D, c.layout if c is not None else layout or "row")
        d = d._replace(element="f32") if d.element == "tf32" else d
        c = c._replace(element="f32") if c is not None and c.element == "tf32" else c
        kinds = Kinds(a, b, None if void else c or d, d)
        super().__init__((A, B, C, D), kinds, element_accumulator, element_compute, alpha, beta, chip, kernel_cc)

    def _check(self) -> None:
        """Raise OpError if there is no kernel for the plan."""
        super()._check()
        if self._opclass is OpcodeClass.TensorOp and WGMMA.is_allowed(self.chip):
            WGMMA.supports(self.asked(), self.call)

    # --------------------------------------------------------------------------------------------------- operations

    def _check_tile(self, td: TileDescription) -> None:
        self._make(td)

    def _described(self, td: TileDescription) -> tuple[TileDescription, Swizzle | None]:
        """Return the tile and the swizzle that describe an operation."""
        return td, self._swizzle

    def _make(self, td: TileDescription, alignments: Sequence[int | None] = (None,) * 3) -> GemmOperationUniversal:
        """Return the operation of a tile.  Raises UnsupportedError."""
        a, b, c, d = self.kinds
        kinds = ((a, alignments[0]), (b, alignments[1]), (c or Type("void", d.layout), alignments[2]))
        A, B, C = (TensorDescription(t.element, t.layout, n or 0) for t, n in kinds)
        td, swizzle = self._described(td)
        made = GemmOperationUniversal(
            self.chip, td, A, B, C, self._functor(), swizzle, self._known_visitor(),
            D=TensorDescription(d.element, d.layout),
        )  # fmt: skip
        made.saved = self.saved
        return made

    def operation_for(self, x: Operands, split: Split = ALONE, *, array: bool = False) -> GemmOperationUniversal:
        """Return the operation that computes a call.  ``array`` is True for pointer arrays."""
        asked = self.asked(batch=len(x.d.shape) == 3)
        td = self._tile or chosen(x, asked, **self.where(), call=f"{self.call}.run", array=array, split=split)
        return self.operation_of(td)

    def _key(self, td: TileDescription) -> tuple[object, object]:
        """Return the key of the operation of a tile."""
        return td.kernel or td, current(self._visitor) if self._traced is None else self._traced.key

    def operation_of(self, td: TileDescription) -> GemmOperationUniversal:
        """Return the cached operation of a tile."""
        key = self._key(td)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._make(td)
        return found

    def tile_descriptions(self, problem: Sequence[int] | None = None) -> Sequence[TileDescription]:
        """Return all tiles with a kernel, the best first for a problem (M, N, K), by default 4096 each.

        Nothing is compiled.
        """
        return tiles_of(self.asked(), tuple(problem or _TYPICAL), **self.where())

    def construct(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Return an operation without compiling it.

        Args:
            tile_description: the tile, by default that of the plan, or else the best for 4096 x 4096 x 4096. A dict
                changes fields of the default.
            alignment_A, alignment_B, alignment_C: elements of which addresses and row strides are multiples, by
                default 16 bytes; less needs a kernel without TMA.

        Raises:
            UnsupportedError: if there is no such kernel.
        """
        alignments = (alignment_A, alignment_B, alignment_C)
        usual = self._tile or self._usual(alignments)
        td = usual.replace(tile_description) if isinstance(tile_description, Mapping) else tile_description or usual
        return self._make(td, alignments)

    def _usual(self, alignments: Sequence[int | None]) -> TileDescription:
        a, b, c, d = self.kinds
        types = (a.element, b.element, (c or d).element)
        whole = all(n is None or n * SIZES[e] >= 16 for n, e in zip(alignments, types))
        usual = self.tile_descriptions()[0]
        # Kernels that split f32 into parts allocate aligned memory for them.
        if whole or self._opclass is OpcodeClass.Simt or not WGMMA.is_allowed(self.chip) or usual.in_parts:
            return usual
        return ampere_tiles(self.asked())[0]

    def compile(
        self, tile_description: TileDescription | Mapping[str, object] | None = None, alignment_A: int | None = None,
        alignment_B: int | None = None, alignment_C: int | None = None, *, print_module: bool = False,
    ) -> GemmOperationUniversal:  # fmt: skip
        """Compile the operation of :meth:`construct` for the plan's alpha and beta, and use it in ``run``.

        ``print_module`` prints its source text.
        """
        operation = self.construct(tile_description, alignment_A, alignment_B, alignment_C)
        beta = 0.0 if self.kinds.c is None else self._beta
        if print_module:
            print(operation.ir())
        operation.compile(self._alpha, beta)
        self._tile = operation.tile_description
        self._operations = {self._key(self._tile): operation}
        self._known.clear()
        return operation

    def _ran(self, found: Arguments) -> Arguments:
        """Launch a call, and record its kernels."""
        found.launch()
        self._record(found)
        return found

    def _given(
        self, call: str, A: object, B: object, C: object = None, D: object = None
    ) -> tuple[object, object, object, object]:
        """Return the arrays of a call, with the plan's arrays as defaults.  Raises LayoutError without A or B."""
        found = self._arrays(A, B, C, D)
        for name, array in zip("AB", found):
            if array is None:
                raise LayoutError(f"{call}: {name} is missing; pass it to the call or to the plan")
        return found

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        a, b, c, d = self.kinds
        return {**super().settings(), "layouts": [a.layout, b.layout, (c or d).layout, d.layout]}

    def _shown(self) -> Variant:
        """Return the kernel of the last run, or of :meth:`construct`."""
        last = self._last
        if last is None or (self.saved is None and last.operation not in self._operations.values()):
            return self.construct().first()
        if self._traced is None and self.saved is None:
            return last.operation.first()
        return next(v for v in last.sources() if not isinstance(v.configured, PartsConfig))

    def __repr__(self) -> str:
        a, b, c, d = self.kinds
        return f"<{self.call} A {a}; B {b}; C {c or 'none'}; D {d}>"


def types_of(settings: Fields) -> dict[str, Any]:
    """Return the constructor arguments for types and numbers from :meth:`MatrixPlan.settings`."""
    names = ("element_accumulator", "alpha", "beta", *[f"element_{n}" for n in "ABCD"])
    layouts = {f"layout_{n}": layout for n, layout in zip("ABCD", settings["layouts"])}
    if settings["element_C"] == "void":
        layouts["layout_C"] = None
    return {n: settings[n] for n in names} | layouts


def _type(
    call: str, name: str, array: object, element: object, all_elements: object, layout: object, all_layouts: object
) -> Type:
    """Return the type of an operand: of its array, of its own arguments, or of those for all operands.

    Raises DtypeError, LayoutError.
    """
    if array is not None:
        for what, value, error in (("element", element, DtypeError), ("layout", layout, LayoutError)):
            if value is not None:
                raise error(f"{call}: {name} and {what}_{name} are both given; pass one of them")
        found = found_type(call, name, read(call, name, array))
        # With element="tf32", f32 arrays are multiplied as tf32.
        common = None if all_elements is None else checked_element(all_elements)
        return found._replace(element="tf32") if (common, found.element) == ("tf32", "f32") else found
    element, layout = all_elements if element is None else element, all_layouts if layout is None else layout
    if element is None:
        raise DtypeError(f"{call}: the element type of {name} is unknown; pass {name}, element_{name} or element")
    if layout is None:
        raise LayoutError(f"{call}: the layout of {name} is unknown; pass {name}, layout_{name} or layout")
    return Type(checked_element(element, f"{call}: element_{name}"), layout_name(layout, f"{call}: layout_{name}"))
