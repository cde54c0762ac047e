"""Gradients of RMSNorm and LayerNorm, and of cross entropy.

Norms: persistent blocks iterate over rows, while the next rows are copied to shared memory (:class:`Ring`). The sums of
the forward pass are recomputed together with those of the gradient, in one exchange. A thread has the same columns of
all rows, and accumulates the gradients of their weights and biases in registers. Each block writes its sums to a row of
``parts``, and :mod:`cute_dialect.kernels.epilogue.reductions` adds the rows in a fixed order.

    norm = norm_backward_program("layernorm", "bf16", 4096, "wb")
    norm(x, w, dy, dx, parts, 1e-5)                 # parts: f32, (blocks, 2 * columns)

With a residual, ``x`` is the sum that is normalized, and its own gradient is added to ``dx``.

Cross entropy: ``dx = (e^(x - lse) - [column is the target]) g``, without a reduction.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import (
    MANY,
    MAX_CLUSTER,
    PROCESSORS,
    Plan,
    RowConfig,
    capacity,
    fewest_threads,
    short_threads,
    width,
)
from cute_dialect.kernels.rows.forward import add, deviations, pivot_of, power, where_mine, wide
from cute_dialect.kernels.rows.memory import Place, RowMemory, part, widened
from cute_dialect.kernels.rows.sharing import ExchangeBuffer, Sharing
from cute_dialect.lang.values.dtypes import type_of_mlir

VALUES = 16
"""Elements of a row per thread. An f32 sum for each of them fills the registers."""

MOST = 512
"""Threads of a block, with 128 registers each."""

ALONE = 640
"""Threads of a block that has a row of 16-bit elements to itself. With 96 registers per thread it is still faster than
an exchange with other blocks."""

LIGHT = 512
"""Number of vectors of ``f32`` rows up to which a thread has two of them instead of four."""

STAGES, RING = 4, 192 * 1024
"""Rows in flight, and bytes of shared memory per multiprocessor that they may use."""


def gradient_class(element: str, n: int, takes: str = "wb") -> RowConfig:
    """Return the class of rows of ``n`` elements for the gradients of norms.

    Args:
        element: The element type.
        n: The row length.
        takes: The parameters that need gradients, ``w`` and ``b``, and ``r`` if the gradient of the sum is added.
            Without biases a thread has registers left, so fewer and larger blocks share a long row of 16-bit elements.

    Raises:
        ValueError: if rows are too long.

    >>> [gradient_class("bf16", n)[:4] for n in (100, 768, 4096, 10240, 32768)]
    [(8, 2, 16, 1), (64, 2, 1, 1), (256, 2, 1, 1), (640, 2, 1, 1), (256, 2, 1, 8)]
    >>> gradient_class("bf16", 32768, "w")[:4]
    (1024, 2, 1, 2)
    """
    w = width(element)
    vectors, most = max(1, n // w), VALUES // w
    if n > longest_gradient(element):
        raise ValueError(f"gradients of norms support rows of at most {longest_gradient(element)} elements, got {n}")
    if vectors <= 32 * most:
        threads = max(
            short_threads(element, n), 2 if n % w else 1
        )  # a single thread would lack registers for the edges
        return staged(RowConfig(threads, -(-vectors // threads), 128 // threads), takes)
    if most > 2 and vectors <= LIGHT:  # Half of the registers allow twice the threads, which hides more latency.
        most = 2
    cluster, threads = 1, ALONE if w == 8 else MOST
    while vectors > threads * most * cluster:
        cluster, threads = 2 * cluster, MOST
    if cluster == 4:
        # Two small blocks of a multiprocessor hide each other's exchanges. A single large block needs fewer exchanges.
        cluster = 2 if w == 8 and "b" not in takes else 8
    threads = 32 * -(-vectors // (32 * most * cluster))
    return staged(RowConfig(threads, -(-vectors // (threads * cluster)), 1, cluster), takes)


def staged(config: RowConfig, takes: str = "", stages: int = STAGES) -> RowConfig:
    """Return a configuration with up to ``stages`` rows in flight, as shared memory allows."""
    fit = RING // (resident(config) * slot_bytes(config, takes))
    return config._replace(stages=max(1, min(stages, fit)))


def slot_bytes(config: RowConfig, takes: str = "") -> int:
    """Return the bytes of shared memory per block for a row and its gradients: 16 per vector of a thread."""
    return (3 if "r" in takes else 2) * 16 * config.chunks * config.block


def longest_gradient(element: str) -> int:
    """Return the length of the longest rows that the gradients of norms support."""
    return MOST * MAX_CLUSTER * VALUES + width(element) - 1


def part_columns(n: int) -> int:
    """Return the columns of ``parts`` for the weights of ``n`` elements, a multiple of an f32 vector."""
    return -(-n // 4) * 4


class Ring(RowMemory):
    """Ring of rows of ``x`` and ``dy``, and of the gradient of the sum if there is one: shared-memory slots for
    ``stages`` rows each.

    A thread copies the vectors that it will itself read, so no barrier guards a slot. Accumulation over rows needs the
    same columns of every row in a thread. Rows of whole vectors provide this.

    Other rows start in the middle of an aligned vector, each at a different element. If rows are a multiple of 16 bytes
    apart, all rows of one group of threads start at the same element (``steady``). The launch rounds the number of
    blocks to make it so. Otherwise, or if ``dy`` or ``dx`` have a different alignment, elements are copied one by one.
    Columns are then counted from the start of the row.
    """

    def __init__(self, plan: Plan, sharing: Sharing, x: cute.Tensor, d: cute.Tensor, r: Any, y: cute.Tensor):
        super().__init__(plan, sharing, x, [], y)
        c, self.rows = plan.config, x.shape[0]
        self.sources = [x, d] if r is None else [x, d, r]
        self.base = sharing.row if c.rows == 1 else cute.arch.block_idx().x * c.rows
        self.sub = 0 if c.rows == 1 else cute.arch.thread_idx().x // c.threads
        self.step = cute.arch.grid_dim().x // c.cluster * c.rows
        self.steady: Any = True
        if not plan.whole:
            row, w = cute.min(sharing.row, self.rows - 1), plan.width
            begin, self.steady = self.skew(x, row, w), self.rows > 0
            for t in (*self.sources, y):
                fixed = (self.step >= self.rows) | (t.stride[0] % w * (self.step % w) % w == 0)
                self.steady = self.steady & fixed & (self.skew(t, row, w) == begin)
        # A slot has the chunks of x, dy and the gradient of the sum, in this order. A chunk has one vector per thread
        # of the block.
        self.apart = c.block * plan.width
        self.slot = len(self.sources) * plan.chunks * self.apart
        # The accumulators of unaligned rows use the memory of the ring at the end.
        self.pitch = c.threads + 32 // plan.width  # no bank conflicts between the columns of a vector
        sums = 0 if plan.whole or c.rows > 1 else plan.chunks * plan.width * self.pitch * 32 // self.dtype.width
        memory = cute.smem_tensor(self.dtype, cute.make_layout(max(c.stages * self.slot, sums))).iterator
        self.sums = cute.recast_ptr(memory, dtype=cute.Float32)
        self.own = memory + cute.arch.thread_idx().x * plan.width
        self.columns = self.place(sharing.row)
        if not self.has_last(self.columns):  # a thread without the last vector of one row lacks it in every row
            nothing = self.registers(1)
            nothing.fill(0.0)
            for i in cute.range_constexpr(len(self.sources) * c.stages):
                cute.autovec_copy(self.in_registers(nothing, 0, 1), self.held(0, (i + 1) * plan.chunks - 1))

    def head(self, row: Any) -> Any:
        """Return the number of elements of a row before its first vector."""
        return cute.where(self.steady, super().head(row), 0)

    def held(self, slot: Any, chunk: int) -> cute.Tensor:
        """Return this thread's vector of a chunk in a slot, as ``(width, 1)``."""
        return self._chunks(self.own + slot * self.slot, chunk, 1, self.apart)

    def fetch_row(self, row: Any, slot: Any) -> None:
        """Issue the copies of the vectors of a row to a slot."""
        place, chunks = self.place(row), self.plan.chunks
        for number, tensor in enumerate(self.sources):
            for i in range(chunks):
                mine = True if i < chunks - 1 else self.has_last(place)
                if mine:
                    to = self.held(slot, number * chunks + i)
                    if self.steady:
                        cute.copy(self.fetch_atom, self.chunks(self.begin(tensor, place), i, 1), to)
                    else:
                        at = tensor[place.source, None].iterator + self.first
                        values = self.registers(1)
                        cute.autovec_copy(self.chunks(at, i, 1), self.in_registers(values, 0, 1))
                        cute.autovec_copy(self.in_registers(values, 0, 1), to)

    def vectors(self, slot: Any, chunk: int) -> list[cute.Tensor]:
        """Return this thread's elements of each matrix in a chunk."""
        found = [self.registers(1) for _ in self.sources]
        for number, values in enumerate(found):
            cute.autovec_copy(self.held(slot, number * self.plan.chunks + chunk), self.in_registers(values, 0, 1))
        return found

    def edges_of(self, row: Any) -> list[Any]:
        """Load the edges and the first element of a row. Rows past the end read the last row."""
        place = self.place(cute.min(row, self.rows - 1))
        first = cute.make_rmem_tensor(1, self.dtype)
        first[0] = self.first_element(place)
        return [*[self.load_edges(t, place) for t in self.sources], first]

    def write_vector(self, place: Place, chunk: int, values: cute.Tensor) -> None:
        """Store this thread's vector of a chunk of a row of the result."""
        source = self.in_registers(values, 0, 1)
        if self.steady:
            cute.autovec_copy(source, self.chunks(self.begin(self.y, place), chunk, 1))
        else:
            at = self.y[place.source, None].iterator + self.first
            cute.autovec_copy(source, self.chunks(at, chunk, 1))


class Gradient:
    """Base class of norm gradients: partial results of the norm, followed by those of the gradient."""

    def __init__(self, memory: RowMemory, eps: Any, pivot: Any):
        self.memory, self.plan, self.eps, self.lanes = memory, memory.plan, eps, memory.sharing.lanes
        self.pivot = pivot

    def placed(self, x: Any) -> Any:
        """Return elements in the form in which they are accumulated."""
        return x

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [0.0] * count


class RmsGradient(Gradient):
    """``dx = (g - x c) / rms`` with ``g = dy w``; ``c`` is the mean of ``g x`` divided by the mean square."""

    def of_warp(self, pieces: list[tuple[Any, Any, Any]]) -> list[Any]:
        """Return the sums of ``x x`` and ``g x`` over ``pieces``: elements, gradients, predicate of this thread."""
        squares, products = cute.Float32(0), cute.Float32(0)
        for x, g, mine in pieces:
            one, two = (x * x).sum(), (x * g).sum()
            squares += where_mine(mine, one)
            products += where_mine(mine, two)
        return self.over_lanes([squares, products], self.lanes)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        return [cute.arch.warp_reduction(x, add, lanes) for x in numbers]

    def of_row(self, numbers: list[Any], share: Any) -> None:
        """Set the statistics of the row from its sums."""
        squares, products = numbers
        self.by = cute.arch.rsqrt_approx(squares * share + self.eps)
        self.c = products * share * self.by * self.by

    def normed(self, x: Any) -> Any:
        """Return normalized elements, before weights."""
        return x * self.by

    def element(self, x: Any, g: Any) -> Any:
        """Return the gradient of elements."""
        return (g - x * self.c) * self.by


class LayerGradient(Gradient):
    """``dx = (g - mean of g - y * mean of g y) / deviation``; ``y`` is the norm without weights, and ``g = dy w``.

    Elements are relative to the row's pivot (:func:`~cute_dialect.kernels.rows.forward.pivot_of`). A partial result has
    five numbers: the sum of elements, the squared deviations from their own mean, and their count; the sum of ``g``,
    and the sum of ``g`` times the deviations.
    """

    def placed(self, x: Any) -> Any:
        """Return elements minus the pivot."""
        return x - self.pivot

    def of_warp(self, pieces: list[tuple[Any, Any, Any]]) -> list[Any]:
        """Return the warp's partial results.

        ``pieces`` holds elements, gradients, and a predicate that is True if this thread owns them.
        """
        near, (far, squares, count, total, products) = None, [cute.Float32(0)] * 5
        for x, g, mine in pieces:
            mean = x.sum() * (1.0 / x.size)
            near = mean if near is None else cute.where(count > 0, near, mean)
            one = [(x - near).sum(), ((x - near) * (x - near)).sum(), float(x.size), g.sum(), (g * (x - near)).sum()]
            one = [where_mine(mine, v) for v in one]
            far, squares, count = far + one[0], squares + one[1], count + one[2]
            total, products = total + one[3], products + one[4]
        away = far * cute.arch.rcp_approx(cute.max(count, 1.0))
        numbers = [near * count + far, deviations(squares, far * away), count, total, products - total * away]
        return self.over_lanes(numbers, self.lanes)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        total, squares, count, of_g, products = numbers
        own = total * cute.arch.rcp_approx(cute.max(count, 1.0))
        total, elements = (cute.arch.warp_reduction(x, add, lanes) for x in (total, count))
        far = own - total * cute.arch.rcp_approx(cute.max(elements, 1.0))
        more = (squares + far * count * far, of_g, products + of_g * far)
        squares, of_g, products = (cute.arch.warp_reduction(x, add, lanes) for x in more)
        return [total, squares, elements, of_g, products]

    def of_row(self, numbers: list[Any], share: Any) -> None:
        """Set the statistics of the row from the reduced results."""
        total, squares, _, of_g, products = numbers
        self.mean, self.of_g = total * share, of_g * share
        self.by = cute.arch.rsqrt_approx(cute.max(squares * share, 0.0) + self.eps)
        self.c = products * share * self.by * self.by

    def normed(self, x: Any) -> Any:
        """Return normalized elements, before weights and biases."""
        return (x - self.mean) * self.by

    def element(self, x: Any, g: Any) -> Any:
        """Return the gradient of elements."""
        return (g - self.of_g - (x - self.mean) * self.c) * self.by


GRADIENTS = {"rmsnorm": RmsGradient, "layernorm": LayerGradient}


def norm_backward(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, eps: cute.Float32,
    plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Compute the gradients of this block's rows, and the sums of the gradients of the weights."""
    c, width, chunks = plan.config, plan.width, plan.chunks
    if parts is not None:
        cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the parts may start, and waits.
    sharing = Sharing(c, messages=True, several_rows=True)
    ring = Ring(plan, sharing, x, d, r, y)
    share = 1.0 / wide(ring.n)
    sums = [Added(plan) for kind in "wb" if kind in plan.takes]

    for i in cute.range_constexpr(c.stages):
        if ring.base + i * ring.step < ring.rows:
            ring.fetch_row(ring.base + ring.sub + i * ring.step, i)
        cute.arch.cp_async_commit_group()
    weights = edge_weights = None
    if w is not None:
        at = ring.columns._replace(source=0)
        weights = ring.load(as_matrix(w), at, 0, chunks, alike=plan.whole)
        edge_weights = ring.load_edges(as_matrix(w), at)
    edges, trip, slot = ring.edges_of(sharing.row), cute.Int32(0), cute.Int32(0)
    if c.cluster > 1:
        cute.arch.cluster_wait()  # every block has started, so its barrier exists
    for base in range(ring.base, ring.rows, ring.step):
        place = ring.place(base + ring.sub)
        coming = ring.edges_of(base + ring.sub + ring.step)
        cute.arch.cp_async_wait_group(c.stages - 1)
        gradient = GRADIENTS[plan.op](ring, eps, pivot_of(edges[-1][0]))

        def piece(i: int, fresh: bool, slot: Any = slot, gradient: Any = gradient) -> tuple[Any, Any, Any, Any]:
            """Return elements, gradients, weighted gradients, and gradients of the sum of a chunk or, after the last
            chunk, of an edge.
            """
            j = i - chunks
            of = ring.vectors(slot, i) if j < 0 else [part(t, j, 1) for t in edges[:-1]]
            factors = None
            if weights is not None:
                factors = part(weights, i * width, width) if j < 0 else part(edge_weights, j, 1)
            e, g, f = (None if t is None else widened(t, fresh) for t in (*of[:2], factors))
            e = gradient.placed(e)
            return e, g, g if f is None else g * f, widened(of[2], fresh) if fresh and len(of) > 2 else None

        mine = [True] * (chunks - 1) + [ring.has_last(place)] + [has for _, has in place.edges]
        pieces = [piece(i, False) for i in range(len(mine))]
        numbers = gradient.of_warp([(e, scaled, has) for (e, _, scaled, _), has in zip(pieces, mine)])
        gradient.of_row(sharing.exchange(gradient, numbers, ExchangeBuffer(trip & 1, trip >> 1 & 1)), share)
        if place.exists:
            for i in cute.range_constexpr(len(mine)):
                e, g, scaled, of_sum = piece(i, True)  # read again, because the registers hold the accumulators
                has = mine[i]
                if has:
                    for total, term in zip(sums, [gradient.normed(e) * g, g] if "w" in plan.takes else [g]):
                        total.see(i, term)
                    found = gradient.element(e, scaled)
                    found = found if of_sum is None else found + of_sum
                    made = cute.make_rmem_tensor(found.size, ring.dtype)
                    made.store(found.to(ring.dtype))
                    if i < chunks:
                        ring.write_vector(place, i, made)
                    else:
                        y[place.source, place.edges[i - chunks][0]] = made[0]
        if base + c.stages * ring.step < ring.rows:
            ring.fetch_row(base + ring.sub + c.stages * ring.step, slot)
        cute.arch.cp_async_commit_group()
        for old, new in zip(edges, coming):
            if old is not None:
                old.store(new.load())
        trip += 1
        slot = cute.where(slot + 1 < c.stages, slot + 1, 0)
    cute.arch.cp_async_wait_group(0)
    block, columns = cute.arch.block_idx().x // c.cluster, part_stride(ring.n)
    if sums and c.rows == 1:
        for i, total in enumerate(sums):
            total.write(ring, parts, block, i * columns)
    elif sums:  # first reduce over the groups of a block
        held = -(-c.sharing * chunks * width // 4) * 4 + 2 * width
        table = cute.smem_tensor(
            cute.Float32, cute.make_layout((c.rows, len(sums) * held), stride=(len(sums) * held, 1))
        )
        for i, total in enumerate(sums):
            total.write(ring, table, ring.sub, i * held)
        cute.arch.sync_threads()
        for column in range(cute.arch.thread_idx().x, ring.n, c.block):
            for i in cute.range_constexpr(len(sums)):
                found = cute.Float32(0)
                for row in cute.range_constexpr(c.rows):
                    found = found + table[row, i * held + column]
                parts[block, i * columns + column] = found  # type: ignore[index]
    if c.cluster > 1:
        cute.arch.cluster_arrive()  # no block may exit while another one sends to it
        cute.arch.cluster_wait()


def part_stride(n: Any) -> Any:
    """Return the columns of ``parts`` for the weights, as :func:`part_columns`, for a length in a kernel."""
    return (n + 3) // 4 * 4


def as_matrix(vector: Any) -> Any:
    """Return a vector as a matrix with one row; None for None."""
    if vector is None:
        return None
    n = vector.shape[0]
    return cute.make_tensor(vector.iterator, cute.make_layout((1, n), stride=(n, 1)))


class Added:
    """Sums of a thread's columns over the rows that it has processed."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.sums = cute.make_rmem_tensor(plan.chunks * plan.width + plan.edges, cute.Float32)
        self.sums.fill(0.0)

    def see(self, chunk: int, term: Any) -> None:
        """Add elements of a chunk or, after the last chunk, of an edge."""
        w, j = self.plan.width, chunk - self.plan.chunks
        at = part(self.sums, chunk * w, w) if j < 0 else part(self.sums, self.plan.chunks * w + j, 1)
        at.store(at.load() + term)

    def write(self, ring: Ring, parts: cute.Tensor, row: Any, column: Any) -> None:
        """Write the accumulators to a row of the partial results, from a column on."""
        w, place = self.plan.width, ring.columns
        if not self.plan.whole and self.plan.config.rows == 1:
            self.write_unaligned(ring, parts, row, column)
            return
        begin = parts[row, None].iterator + (column + ring.first)
        begin = begin if self.plan.whole else begin + place.head
        for first, n, mine in ring.pieces(place, 0, self.plan.chunks):
            if mine:
                source = cute.make_tensor(self.sums.iterator + first * w, cute.make_layout((w, n), stride=(1, w)))
                cute.autovec_copy(source, ring.chunks(begin, first, n))
        for j, (at, mine) in enumerate(place.edges):
            if mine:
                parts[row, column + at] = self.sums[self.plan.chunks * w + j]

    def write_unaligned(self, ring: Ring, parts: cute.Tensor, row: Any, column: Any) -> None:
        """Write the accumulators through shared memory, so that consecutive threads write consecutive elements."""
        c, w, place, thread = self.plan.config, self.plan.width, ring.columns, ring.sharing.tid
        layout = cute.make_layout((c.threads, self.plan.chunks * w), stride=(1, ring.pitch))
        table = cute.make_tensor(ring.sums, layout)
        cute.arch.sync_threads()  # The slots, or the previous accumulators, have been read.
        for k in cute.range_constexpr(self.plan.chunks * w):
            table[thread, k] = self.sums[k]
        cute.arch.sync_threads()
        for i in cute.range_constexpr(self.plan.chunks):
            first = (i * c.sharing + ring.sharing.rank * c.threads) * w
            for j in range(thread, cute.min(place.vectors * w - first, c.threads * w), c.threads):
                parts[row, column + place.head + first + j] = table[j // w, i * w + j % w]
        for j, (at, mine) in enumerate(place.edges):
            if mine:
                parts[row, column + at] = self.sums[self.plan.chunks * w + j]


@cute.jit
def launch(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, groups: cute.Int32 | None,
    eps: cute.Float32, plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Launch as many blocks or clusters as ``parts`` has rows; without ``parts``, their number is ``groups``."""
    c, held = plan.config, capacity(plan.element, plan.config)
    assert y.shape[0] == x.shape[0], "dx must have as many rows as x"
    assert d.shape[0] == x.shape[0], "dy must have as many rows as x"
    assert x.shape[1] < held.stop, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    assert x.shape[1] >= held.start, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    count = groups if parts is None else parts.shape[0]
    sizes = {"grid": count * c.cluster, "block": c.block, "cluster": c.cluster}
    anywhere = Plan(plan.op, plan.element, c, plan.takes, whole=False)
    vx, vd, vr, vy = (None if m is None else cute.promise_vectors(m, plan.width) for m in (x, d, r, y))
    kernel_of(plan)(vx, w, vd, vr, vy, parts, eps, plan).launch(
        **sizes, fallback=kernel_of(anywhere)(x, w, d, r, y, parts, eps, anywhere)
    )


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, with its register limit."""
    name = f"{plan.op}_backward_v" if plan.whole else f"{plan.op}_backward"
    return cute.kernel(min_blocks=resident(plan.config), name=name)(norm_backward)


def resident(config: RowConfig) -> int:
    """Return the resident blocks of an SM for gradients of norms: by default 512 threads, with 128 registers each."""
    return config.resident or max(1, 512 // config.block)


@printed
def norm_backward_text(op: str, element: str, n: int, takes: str, config: RowConfig | None = None) -> cute.Compiled:
    """Trace the kernel of ``rmsnorm`` or ``layernorm`` backward for the class of ``n``.

    The launch takes ``(x, w, dy, ds, dx, parts, eps)``, without ``w`` or ``ds``, the gradient of the sum, if ``takes``
    has no ``w`` or ``r``. Without weights and biases it takes the number of blocks in place of ``parts``. ``parts`` is
    f32, with a row per block or cluster and :func:`part_columns` columns each for weights and biases.
    """
    config = config or gradient_class(element, n, takes)
    dtype = type_of_mlir(element)
    matrix, vector = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[dtype, "(?):(1)", "align<16>"]
    vectors = takes.strip("r")
    parts = cute.Tensor[cute.Float32, "(?,?{div=4}):(?{div=4},1)", "align<16>"] if vectors else None
    groups = None if vectors else cute.Int32
    w, r = vector if "w" in takes else None, matrix if "r" in takes else None
    plan = Plan(op, element, config, takes)
    return cute.trace(launch, matrix, w, matrix, r, matrix, parts, groups, cute.Float32, plan)


# ------------------------------------------------------------------------------------------------------ cross entropy

AT_ONCE, THREADS = 4, 512
"""Vectors of a row that a thread processes at once; threads that share a long row."""


def entropy_class(element: str, n: int, rows: int = MANY) -> RowConfig:
    """Return the class of ``rows`` rows of ``n`` elements. Several blocks share each of few long rows.

    >>> [entropy_class("bf16", n)[:3] for n in (8, 24, 100, 4096, 50257)]
    [(1, 1, 128), (2, 2, 64), (4, 3, 32), (128, 4, 1), (512, 4, 1)]
    >>> [entropy_class("bf16", 100_000, rows).cluster for rows in (1, 30, 100)]
    [8, 4, 1]
    """
    vectors = max(1, n // width(element))
    if vectors <= 128:  # rows of a warp or a part of one
        threads = min(32, 1 << (-(-vectors // (2 if vectors <= 4 else 5)) - 1).bit_length())
        threads = max(threads, fewest_threads(element, n))
        return RowConfig(threads, min(AT_ONCE, -(-vectors // threads)), 128 // threads)
    threads, cluster = min(THREADS, 1 << (-(-vectors // AT_ONCE) - 1).bit_length()), 1
    while cluster < MAX_CLUSTER and 2 * cluster * rows <= PROCESSORS and vectors > cluster * threads * AT_ONCE:
        cluster *= 2
    return RowConfig(threads, AT_ONCE, cluster=cluster)


def entropy_backward(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, smoothing: Any, y: cute.Tensor,
    ignored: cute.Int32, plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Compute the gradient of each row of this block: whole vectors first, then the edges."""
    sharing = Sharing(plan.config)
    memory = RowMemory(plan, sharing, x, [], y)
    place, w = memory.place(sharing.row), plan.width
    target, alike = t[place.source].to(cute.Int32), memory.alike(y, place)
    by = wide(g[place.source]) if count is None else wide(g[place.source]) / count[0]
    by, of_row = cute.where(target == ignored, 0.0, by), lse[place.source]
    of_target = by if smoothing is None else by * (1.0 - smoothing)
    of_others = None if smoothing is None else smoothing / x.shape[1].to(cute.Float32)

    def gradient(v: Any, first: Any, mine: Any) -> Any:
        found = power(wide(v), of_row) * by if of_others is None else (power(wide(v), of_row) - of_others) * by
        made = cute.make_rmem_tensor(found.size, cute.Float32)
        made.store(found)
        at = target - first
        if at >= 0 and at < found.size:
            for k in cute.range_constexpr(found.size):
                made[k] = made[k] - cute.where(at == k, of_target, 0.0)
        return made.load()

    from_x = memory.begin(x, place)
    row_of_y = y[place.source, None].iterator + (place.head + memory.first)
    at_once = plan.chunks * plan.config.sharing
    for first in range(0, place.vectors, at_once):
        values = memory.registers(plan.chunks)
        values.fill(0.0)
        for i in cute.range_constexpr(plan.chunks):
            if first + i * plan.config.sharing + sharing.thread < place.vectors:
                source = memory.chunks(from_x + first * w, i, 1)
                cute.autovec_copy(source, memory.in_registers(values, i, 1))
        for i in cute.range_constexpr(plan.chunks):
            number = first + i * plan.config.sharing + sharing.thread
            mine = number < place.vectors
            at = part(values, i * w, w)
            at.store(gradient(at.load(), place.head + number * w, mine).to(memory.dtype))
            if mine and place.exists:
                made = memory.in_registers(values, i, 1)
                if alike:
                    begin = row_of_y if not plan.whole else y[place.source, None].iterator + memory.first
                    cute.autovec_copy(made, memory.chunks((begin + first * w).align(16), i, 1))
                else:
                    cute.autovec_copy(made, memory.chunks(row_of_y + first * w, i, 1))
    edges = memory.load_edges(x, place)
    for j, (column, mine) in enumerate(place.edges):
        if mine and place.exists:
            y[place.source, column] = gradient(part(edges, j, 1).load(), column, mine)[0].to(memory.dtype)
    if plan.config.cluster > 1:
        cute.arch.cluster_wait()  # completes the arrival of Sharing


@cute.jit
def launch_entropy(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any,
    smoothing: cute.Float32 | None, y: cute.Tensor, ignored: cute.Int32, plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Launch as many blocks as the rows need."""
    c = plan.config
    assert y.shape[0] == x.shape[0], "dx must have as many rows as x"
    sizes = {"grid": cute.ceil_div(x.shape[0], c.rows) * c.cluster, "block": c.block}
    sizes |= {"cluster": c.cluster} if c.cluster > 1 else {}
    anywhere = Plan(plan.op, plan.element, c, whole=False)
    vx, vy = (cute.promise_vectors(m, plan.width) for m in (x, y))
    entropy_kernel(plan)(vx, t, lse, g, count, smoothing, vy, ignored, plan).launch(
        **sizes, fallback=entropy_kernel(anywhere)(x, t, lse, g, count, smoothing, y, ignored, anywhere)
    )


def entropy_kernel(plan: Plan) -> Any:
    """Return the kernel of a plan."""
    return cute.kernel(name=f"{plan.op}_v" if plan.whole else plan.op, min_blocks=plan.resident)(entropy_backward)


@printed
def entropy_backward_text(
    element: str, n: int, of_loss: str, mean: bool, config: RowConfig | None = None, smooth: bool = False
) -> cute.Compiled:
    """Trace the kernel of cross entropy backward for the class of ``n``.

    The launch takes ``(x, target, lse, g, count, smoothing, dx, ignored)``. ``g`` has type ``of_loss`` and one element
    per row; its stride may be 0. For a ``mean``, ``g`` is divided by ``count``. Only a kernel with ``smooth`` takes
    the label smoothing.
    """
    dtype = type_of_mlir(element)
    matrix, numbers = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[cute.Float32, "(?):(1)"]
    g, targets = cute.Tensor[type_of_mlir(of_loss), "(?):(?)"], cute.Tensor[cute.Int64, "(?):(1)"]
    plan = Plan("cross_entropy_backward", element, config or entropy_class(element, n))
    count = numbers if mean else None
    smoothing = cute.Float32 if smooth else None
    return cute.trace(launch_entropy, matrix, targets, numbers, g, count, smoothing, matrix, cute.Int32, plan)
