"""Epilogues that reshape or permute, for kernels that store plain matrices only.

Arguments are brought into the accumulator's shape before the launch.  Results are stored as matrices and then copied
into their own shapes.

    plain = as_matrices(traced)                     # the same graph without reshaped arguments and results
"""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.mode_digits import as_array, as_sums
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import ShapeError

__all__ = ["Apart", "as_matrices", "by_name", "is_arranged"]


def is_arranged(traced: Traced) -> bool:
    """Return True if an argument or a result is reshaped or permuted."""
    return bool(traced.views) or any([a.view is not None for a in traced.arguments])


def as_matrices(traced: Traced) -> Traced:
    """Return the same epilogue with arguments and results in the accumulator's shape."""
    graph = traced.graph._replace(
        inputs=tuple([x._replace(split="") for x in traced.graph.inputs]),
        outputs=tuple([x._replace(split="") for x in traced.graph.outputs]),
    )
    arguments = [a._replace(view=None) for a in traced.arguments]
    return Traced(
        traced.function, graph, arguments, traced.results, traced.returned, traced.form, traced.fixed,
        traced.parameters, traced.examples,
    )  # fmt: skip


def by_name(traced: Traced, returned: Any) -> dict[str, Any]:
    """Return the results of a call with an epilogue by name."""
    if isinstance(returned, dict):
        return dict(returned)
    return dict(zip(traced.returned, returned if isinstance(returned, tuple) else (returned,)))


class Apart(NamedTuple):
    """An epilogue without reshapes, and the arrays of a call."""

    traced: Traced
    plain: Traced
    args: dict[str, Any]  # arguments in the accumulator's shape
    memory: dict[str, Any]  # reshaped or permuted results that the caller passed, by name
    sums: tuple[int, ...]  # shape of the accumulator
    make: Callable[[tuple[int, ...], str], Any]  # make(shape, type) allocates an array

    @classmethod
    def of(
        cls, call: str, traced: Traced, args: Mapping[str, Any], out: Any, sums: Sequence[int],
        make: Callable[[tuple[int, ...], str], Any], *, keep: bool = False,
    ) -> tuple[Apart, Any]:  # fmt: skip
        """Return the epilogue for a result ``out`` (None to allocate it), and the memory for D in the accumulator's
        shape.

        With ``keep``, elements of D that the call does not write keep their values.  Raises ShapeError, DtypeError.
        """
        sums, given, memory = tuple(sums), dict(args), dict[str, Any]()
        for a in traced.arguments:
            x = traced.graph.inputs[a.number]
            if a.view is not None:
                base = (*sums[:-1], sums[-1] // 2) if x.half else sums
                wanted = a.view.shape(base)
                if tuple(given[a.name].shape) != wanted:
                    raise ShapeError(f"{call}: {a.name} has shape {tuple(given[a.name].shape)}; it must have {wanted}")
                given[a.name] = as_sums(given[a.name], a.view, base)
        for name in traced.views:
            to = out if name == "D" else given.get(name)
            if to is None:
                continue
            wanted = traced.shape_of(sums, name)
            if tuple(to.shape) != wanted:
                what = "out" if name == "D" else name
                raise ShapeError(f"{call}: {what} has shape {tuple(to.shape)}; it must have {wanted}")
            memory[name] = to
            base = traced.base_of(sums, traced.graph.outputs[traced.results.index(name)].node)
            matrix = make(base, element_name(to.dtype))
            if keep:
                matrix[...] = as_sums(to, traced.views[name], base)
            given[name] = matrix
        d = given.pop("D", None) if "D" in memory else out
        return cls(traced, as_matrices(traced), given, memory, sums, make), d

    def arranged(self, found: Mapping[str, Any]) -> Any:
        """Return the function's results, given those in the accumulator's shape by name."""
        results = dict(found)
        for name, view in self.traced.views.items():
            t = results[name]
            base = self.traced.base_of(self.sums, self.traced.graph.outputs[self.traced.results.index(name)].node)
            t = as_array(t, view, base)
            to = self.memory.get(name)
            to = self.make(tuple(t.shape), element_name(t.dtype)) if to is None else to
            to[...] = t
            results[name] = to
        return self.traced.formed(results)
