"""A builder whose text people read: values and types have names, and comments stand between the ops.

>>> s = Script()
>>> with s.kernel("scale", {"x": '!cute.memref<f32, gmem, "128:1">'}, threads=128) as (x,):
...     s.say("Each thread doubles one element.")
...     tid = s.let("tid", s.thread_id())
...     v = s.let("v", s.load(x, tid))
...     s.store(x, tid, v + v)
>>> print(s.script("// x = 2 * x").splitlines()[5])
      // Each thread doubles one element.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute

__all__ = ["Script"]

_LONG = 36
"""Types whose text is longer than this get a name."""


class Script(Builder):
    """A builder whose text people read; see the module."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = 0
        self._notes: list[str] = []
        self._named: dict[str, Attribute] = {}

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
        self.threads = threads
        with super().kernel(name, parameters, threads=threads, cluster=cluster, attributes=attributes) as values:
            yield values

    def thread_id(self) -> Value:
        """Return ``tid.x``, which is less than the kernel's number of threads."""
        bounds = f"#llvm.constant_range<i32, 0, {self.threads}>"
        return self.op("nvvm.read.ptx.sreg.tid.x", type="i32", range=bounds)

    def say(self, text: str) -> None:
        """Write a comment line here; more than one where the text has line breaks."""
        note = self.op("cute.static", type=f'!cute.int_tuple<"{len(self._notes)}">')
        note.ssa.name_hint = f"note_{len(self._notes)}_"
        self._notes.append(text)

    def let(self, name: str, value: Value, *, type_name: str | None = None) -> Value:
        """Name a value; its type gets the same name (or ``type_name``) if its text is long."""
        value.ssa.name_hint = name
        self.name_type(type_name or name, value.type)
        return value

    def name_type(self, name: str, attribute: Attribute | str) -> None:
        """Name a type, unless its text is short, or it has a name."""
        t = self.type(attribute)
        if len(str(t)) <= _LONG or t in self._named.values():
            return
        number, unique = 2, name
        while unique in self._named:
            unique, number = f"{name}{number}", number + 1
        self._named[unique] = t

    def script(self, head: str) -> str:
        """Return the file: ``head``, names of types, the module."""
        from cute_dialect.ir.printing import ir_text

        text = ir_text(self.module, source_names=True, aliases=self._named)

        def note(found: re.Match[str]) -> str:
            indent, number = found.group(1), int(found.group(2))
            return "\n".join(f"{indent}// {line}" for line in self._notes[number].split("\n"))

        text = re.sub(r"(?m)^( *)%note_(\d+)_ = .*$", note, text)
        return f"{head.rstrip()}\n\n{text}"

    # ------------------------------------------------------------------------------------------------ tensors

    def shape_of(self, tensor: Value) -> Value:
        """Return the shape of a tensor's layout."""
        return self.op("cute.get_shape", self.op("cute.get_layout", tensor))

    def extents(self, tensor: Value) -> tuple[Value, ...]:
        """Return the extents of a tensor with a flat shape, as ``i32``."""
        from cute_dialect.memory_types import TensorType
        from cute_dialect.ops.access import scalar_payloads
        from cute_dialect.ops.typed_values import outer

        assert isinstance(tensor.ssa.type, TensorType)
        n = len(scalar_payloads(outer(tensor.ssa.type.layout).shape))
        return self.results("cute.get_scalars", self.shape_of(tensor), types=["i32"] * n)

    def barrier(self) -> None:
        """Let all threads of the block wait for each other."""
        self.run("barrier")
