"""Element types: one width in the tables of atoms, the dialect and the interpreter; rounding of the narrow floats."""

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.arch.elements import bits_of, by_ptx, element
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.interp.rounding import FORMATS, narrow
from cute_dialect.interp.types import float_leaf
from cute_dialect.lang.tracing.tracer import parse_type
from cute_dialect.lang.values.dtypes import type_of_mlir
from cute_dialect.passes.lowering.types import lowered

NARROW = ("f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_have_one_width(name: str):
    attribute = parse_type(name)
    assert bits_of(name) == element_bits(attribute) == type_of_mlir(name).width
    assert str(lowered(attribute)) == f"i{bits_of(name)}"
    assert by_ptx(element(name).ptx) == name
    assert float_leaf(name).dtype == np.dtype(getattr(ml_dtypes, type_of_mlir(name).numpy))


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_round_to_nearest_even(name: str):
    """Numbers of the type, midpoints and their neighbors, rounded once from f64."""
    form = FORMATS[element(name).ptx]
    codes = np.arange(1 << bits_of(name), dtype=np.uint8).view(form.dtype).astype(np.float64)
    numbers = np.unique(codes[np.isfinite(codes)])
    assert numbers[-1] == form.largest
    middles = (numbers[1:] + numbers[:-1]) / 2
    assert np.array_equal(narrow(numbers, element(name).ptx).astype(np.float64), numbers)
    below, above = np.nextafter(middles, -np.inf), np.nextafter(middles, np.inf)
    assert np.array_equal(narrow(below, element(name).ptx).astype(np.float64), numbers[:-1])
    assert np.array_equal(narrow(above, element(name).ptx).astype(np.float64), numbers[1:])
    if name != "f8E8M0FNU":  # Its conversions do not round to nearest.
        bits = numbers[:-1].astype(form.dtype).view(np.uint8)
        even = np.where(bits & 1 == 0, numbers[:-1], numbers[1:])
        assert np.array_equal(narrow(middles, element(name).ptx).astype(np.float64), even)
