"""The table of torch operators, ``torch.ops.cute.NAME``.  Importing this module registers them.

A row has the functions that compute the results and the gradients of an operator; see
:class:`~cute_dialect.op.torch.registry.Operator`.  ``torch.compile``, ``torch.export`` and ``torch.vmap`` use the
operators.  Eager calls with gradients use autograd nodes of the same functions.
"""

from __future__ import annotations

from cute_dialect.op.operators import (
    attention,
    conv,
    embedding,
    flex_attention,
    gemm,
    grouped,
    linear_cross_entropy,
    mla,
    optimizers,
    packed_weights,
    routing,
    rows,
    sparse_weights,
)
from cute_dialect.op.problems.rows import MAPS, NUMBERS_BY_KERNEL
from cute_dialect.op.torch.gradients import slope
from cute_dialect.op.torch.registry import Operator, register

_ACCUMULATOR = "float alpha=1.0, float beta=1.0, str activation=''"
_HOW = "str device='', str math='default', str accumulator=''"
_GEMM = f"Tensor? c=None, Tensor? bias=None, *, {_ACCUMULATOR}, ScalarType? dtype=None, {_HOW}"
_ADDMM = (
    "(Tensor c, Tensor a, Tensor b, Tensor? bias=None, *, float beta=1.0, float alpha=1.0, str activation='', "
    f"ScalarType? dtype=None, {_HOW}) -> Tensor"
)
_WINDOW = (
    "int[] stride, int[] before, int[] after, int[] dilation, *, int groups=1, bool flip=False, "
    "ScalarType? dtype=None, str device='', str math='default'"
)
_CONV = f"(Tensor x, Tensor f, Tensor? bias, Tensor? c, {_WINDOW}, {_ACCUMULATOR})"
_SLOPE = "(Tensor grad, Tensor sums, str activation, str device='') -> (Tensor, Tensor)"
_SEQUENCES = (
    "Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? sinks, Tensor? alibi_slopes, "
    "Tensor? mask, Tensor? rng_state"
)
_MASK = (
    "str causal, SymInt left, SymInt right, float? scale, str layout, SymInt? max_seqlen_q, float softcap, "
    "bool? deterministic, SymInt? max_seqlen_k, float dropout_p"
)
_FLEX = "Tensor query, Tensor key, Tensor value, Tensor[] captured, Tensor[] lists"
_PAIR, _TRIPLE = "(Tensor, Tensor)", "(Tensor, Tensor, Tensor)"
_ROUTE = "SymInt k, str score, SymInt? groups, SymInt? top_groups, bool normalise, float scale"
_LINEAR_LOSS = (
    "SymInt ignore_index, str reduction, float label_smoothing, SymInt chunk, bool of_x, bool of_weight, bool of_bias"
)


def _products(call: str) -> list[Operator]:
    """Return the rows of ``mm`` or ``bmm``."""
    return [
        Operator(
            call, f"(Tensor a, Tensor b, {_GEMM}) -> Tensor", gemm.forward(call), gemm.fake(call),
            gemm.keep(call), gemm.backward(call), gemm.batched_product(call),
        ),
        Operator(
            f"{call}_out", f"(Tensor a, Tensor b, Tensor(a!) out, {_GEMM}) -> ()", gemm.out(call),
            gemm.fake_out(call), mutates=("out",),
        ),
        Operator(
            f"{call}_kept", f"(Tensor a, Tensor b, {_GEMM}) -> {_PAIR}", gemm.kept(call), gemm.fake_kept(call),
            gemm.keep(call), gemm.backward(call), gemm.batched_product(call, kept=True),
        ),
        Operator(
            f"{call}_slope", _SLOPE, slope, gemm.fake_slope, backward=gemm.no_second_derivative(call),
            vmap=gemm.batched_slope,
        ),
    ]  # fmt: skip


OPERATORS = (
    *_products("mm"),
    *_products("bmm"),
    # Compositions of mm and bmm.
    Operator("addmm", _ADDMM, gemm.composed("addmm", 3), None),
    Operator("baddbmm", _ADDMM, gemm.composed("baddbmm", 3), None),
    Operator(
        "linear",
        "(Tensor x, Tensor weight, Tensor? bias=None, str activation='', *, float alpha=1.0, ScalarType? dtype=None, "
        f"{_HOW}) -> Tensor",
        gemm.composed("linear", 4), None,
    ),
    Operator(
        "matmul", f"(Tensor a, Tensor b, *, float alpha=1.0, ScalarType? dtype=None, {_HOW}) -> Tensor",
        gemm.composed("matmul", 2), None,
    ),
    # Grouped GEMMs.
    Operator(
        "grouped_mm",
        "(Tensor a, Tensor b, Tensor? offs=None, Tensor? lengths=None, Tensor? row_groups=None, Tensor? c=None, "
        f"Tensor? bias=None, Tensor? begins=None, *, {_ACCUMULATOR}, str rest='keep', ScalarType? dtype=None, "
        "str device='', str math='default') -> Tensor",
        grouped.forward, grouped.fake, grouped.keep, grouped.backward,
    ),
    Operator(
        "group_bounds", f"(Tensor row_groups, int groups, str device) -> {_PAIR}", grouped.bounds, grouped.fake_bounds
    ),
    # Convolutions, of any rank; the gradients of each operator are the others.
    Operator("conv", f"{_CONV} -> Tensor", conv.forward, conv.fake, conv.keep, conv.backward),
    Operator("conv_kept", f"{_CONV} -> {_PAIR}", conv.forward_kept, conv.fake_kept, conv.keep, conv.backward),
    Operator("conv_slope", _SLOPE, conv.forward_slope, conv.fake_slope, backward=gemm.no_second_derivative("conv")),
    Operator(
        "conv_input", f"(SymInt[] size, Tensor f, Tensor grad, {_WINDOW}) -> Tensor", conv.forward_input,
        conv.fake_input, conv.keep_input, conv.backward_input,
    ),
    Operator(
        "conv_weight", f"(Tensor x, SymInt[] size, Tensor grad, {_WINDOW}) -> Tensor", conv.forward_weight,
        conv.fake_weight, conv.keep_weight, conv.backward_weight,
    ),
    # Attention.
    Operator(
        "attention",
        f"({_SEQUENCES}, Tensor? seqused_k, Tensor? page_table, Tensor? seqused_q, Tensor? leftpad_k, "
        f"Tensor? q_descale, Tensor? k_descale, Tensor? v_descale, {_MASK}, bool lse, int seqused_k_offset, "
        f"int attention_chunk, ScalarType? dtype) -> {_PAIR}",
        attention.forward, attention.fake, attention.keep, attention.backward,
    ),
    Operator(
        "attention_backward",
        f"({_SEQUENCES}, Tensor out, Tensor lse, Tensor? grad, Tensor? grad_lse, {_MASK}, bool of_mask) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor)",
        attention.forward_gradients, attention.fake_gradients,
    ),
    Operator(
        "flex_attention", f"({_FLEX}, str functions, SymInt[] blocks, float? scale) -> {_PAIR}",
        flex_attention.forward, flex_attention.fake, flex_attention.keep, flex_attention.backward,
    ),
    Operator(
        "flex_attention_backward",
        f"({_FLEX}, Tensor out, Tensor lse, Tensor? grad, Tensor? grad_lse, str functions, SymInt[] blocks, "
        "float? scale, int[] learned) -> (Tensor, Tensor, Tensor, Tensor[])",
        flex_attention.forward_gradients, flex_attention.fake_gradients,
    ),
    Operator(
        "cascade_attention",
        "(Tensor q, Tensor k_shared, Tensor v_shared, Tensor k, Tensor v, Tensor? sinks, Tensor? cu_groups, "
        "Tensor? seqused_shared, Tensor? page_table_shared, Tensor? seqused_k, Tensor? page_table, bool causal, "
        f"float? scale, float softcap, bool lse, str layout, int seqused_k_offset, SymInt? max_group) -> {_PAIR}",
        attention.forward_cascade, attention.fake_cascade,
    ),
    Operator(
        "merge_attention", f"(Tensor outs, Tensor lses) -> {_PAIR}", attention.forward_merge, attention.fake_merge,
        attention.keep_merge, attention.backward_merge,
    ),
    Operator(
        "merge_attention_", "(Tensor(a!) out, Tensor(b!) lse, Tensor other, Tensor other_lse) -> ()",
        attention.forward_merge_in_place, attention.fake_append, mutates=("out", "lse"),
    ),
    Operator(
        "rope",
        "(Tensor x, Tensor cos, Tensor sin, Tensor? positions, Tensor? offsets, bool interleaved, str layout, "
        "bool inverse) -> Tensor",
        attention.rotate, attention.fake_rotate, attention.keep_rotate, attention.rotate_back,
    ),
    Operator(
        "append_kv",
        "(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor seqused_k, Tensor? page_table, "
        "Tensor? cos, Tensor? sin, Tensor? offsets, bool interleaved, str layout) -> ()",
        attention.append, attention.fake_append, mutates=("k_cache", "v_cache"),
    ),
    Operator(
        "mla_decode",
        "(Tensor q, Tensor cache, Tensor? page_table, Tensor? seqused_k, SymInt? max_seqlen_k, bool causal, "
        f"float? scale, bool lse) -> {_PAIR}",
        mla.forward, mla.fake,
    ),
    # Quantization.
    Operator("quantize", f"(Tensor x, str dtype, str regions) -> {_PAIR}", rows.quantize, rows.fake_quantize),
    Operator(
        "quantize_scaled", "(Tensor x, str dtype, Tensor scale) -> Tensor", rows.quantize_scaled,
        rows.fake_quantize_scaled,
    ),
    Operator(
        "dequantize", "(Tensor q, Tensor scales, str dtype) -> Tensor", rows.dequantize, rows.fake_converted
    ),
    # Packed weights.
    Operator(
        "mm_packed", "(Tensor x, Tensor data, Tensor? bias, SymInt n, SymInt k, str format, str dtype) -> Tensor",
        packed_weights.forward, packed_weights.fake, packed_weights.keep, packed_weights.backward,
    ),
    Operator(
        "unpack_weight", "(Tensor data, SymInt n, SymInt k, str format, str dtype) -> Tensor", packed_weights.unpack,
        packed_weights.fake_unpack,
    ),
    # 2:4 sparse weights.
    Operator(
        "mm_sparse", "(Tensor x, Tensor kept, Tensor metadata, Tensor? bias) -> Tensor", sparse_weights.forward,
        sparse_weights.fake, sparse_weights.keep, sparse_weights.backward,
    ),
    Operator(
        "expand_2_4", "(Tensor kept, Tensor metadata) -> Tensor", sparse_weights.expand, sparse_weights.fake_expand
    ),
    Operator(
        "norm_quantize",
        "(str call, Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, float eps, str dtype, str regions) -> "
        f"{_TRIPLE}",
        rows.norm_quantize, rows.fake_norm_quantize,
    ),
    # Top-k and sampling.
    Operator(
        "sample",
        "(Tensor logits, Tensor? temperatures, Tensor? top_ks, Tensor? top_ps, Tensor? min_ps, Tensor? seeds, "
        "Tensor? offsets, float temperature, SymInt top_k, float top_p, float min_p, SymInt seed, SymInt offset) -> "
        "Tensor",
        rows.sample, rows.fake_sample,
    ),
    Operator(
        "topk", f"(Tensor x, SymInt k, SymInt dim, bool largest) -> {_PAIR}", rows.topk, rows.fake_topk,
        rows.keep_topk, rows.topk_gradient,
    ),
    Operator(
        "topk_backward", "(Tensor dvalues, Tensor indices, SymInt n) -> Tensor", rows.topk_backward,
        rows.fake_topk_backward,
    ),
    # Embedding.
    Operator(
        "embedding", "(Tensor weight, Tensor input, SymInt padding) -> Tensor", embedding.forward, embedding.fake,
        embedding.keep, embedding.backward,
    ),
    Operator(
        "embedding_backward", "(Tensor dout, Tensor input, SymInt rows, SymInt padding) -> Tensor",
        embedding.gradient, embedding.fake_gradient,
    ),
    # Optimizers.
    Operator(
        "adamw_",
        "(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, Tensor? lrs, "
        "Tensor? steps, Tensor? grad_scale, Tensor? found_inf, float step, float lr, float beta1, float beta2, "
        "float eps, float weight_decay, bool maximize) -> ()",
        optimizers.adamw, optimizers.fake_adamw, mutates=("params", "exp_avgs", "exp_avg_sqs"),
    ),
    # Gated activations.
    Operator(
        "gated", "(Tensor x, str activation) -> Tensor", rows.gated_activation, rows.fake_gated, rows.keep_gated,
        rows.gated_backward,
    ),
    Operator(
        "gated_backward", "(Tensor dy, Tensor x, str activation) -> Tensor", rows.gated_gradient,
        rows.fake_gated_gradient,
    ),
    # Routing of a mixture of experts.
    Operator(
        "route", f"(Tensor logits, Tensor? bias, {_ROUTE}) -> {_PAIR}", routing.route, routing.fake_route,
        routing.keep_route, routing.backward_route,
    ),
    Operator(
        "route_backward", f"(Tensor dweights, Tensor logits, Tensor experts, {_ROUTE}) -> Tensor",
        routing.route_gradient, routing.fake_route_gradient,
    ),
    Operator(
        "dispatch", f"(Tensor x, Tensor experts, SymInt num_experts) -> {_TRIPLE}", routing.dispatch,
        routing.fake_dispatch, routing.keep_dispatch, routing.backward_dispatch,
    ),
    Operator(
        "combine", "(Tensor y, Tensor order, Tensor? weights) -> Tensor", routing.combine, routing.fake_combine,
        routing.keep_combine, routing.backward_combine,
    ),
    Operator(
        "combine_backward", f"(Tensor dout, Tensor? y, Tensor order, Tensor? weights) -> {_PAIR}",
        routing.combine_gradient, routing.fake_combine_gradient,
    ),
    # Row functions.
    *(
        Operator(
            call, "(Tensor x) -> Tensor", rows.mapped(call), rows.fake_like(), rows.keep_output,
            rows.mapped_gradient(call),
        )
        for call in MAPS
    ),
    *(
        Operator(f"{call}_backward", "(Tensor dy, Tensor y) -> Tensor", rows.mapped_backward(call), rows.fake_like(1))
        for call in MAPS
    ),
    Operator(
        "rms_norm", "(Tensor x, Tensor? weight, float eps) -> Tensor", rows.rms_norm, rows.fake_like(),
        rows.keep_norm, rows.norm_gradient,
    ),
    Operator(
        "layer_norm", "(Tensor x, Tensor? weight, Tensor? bias, float eps) -> Tensor", rows.layer_norm,
        rows.fake_like(), rows.keep_norm, rows.norm_gradient,
    ),
    Operator(
        "rms_norm_residual", f"(Tensor x, Tensor residual, Tensor? weight, float eps) -> {_PAIR}",
        rows.rms_norm_residual, rows.fake_like(count=2), rows.keep_norm, rows.residual_gradient,
    ),
    Operator(
        "layer_norm_residual", f"(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, float eps) -> {_PAIR}",
        rows.layer_norm_residual, rows.fake_like(count=2), rows.keep_norm, rows.residual_gradient,
    ),
    Operator(
        "rms_norm_backward", f"(Tensor dy, Tensor x, Tensor? weight, float eps, Tensor? ds) -> {_PAIR}",
        rows.rms_norm_backward, rows.fake_rms_norm_backward,
    ),
    Operator(
        "layer_norm_backward",
        f"(Tensor dy, Tensor x, Tensor? weight, bool bias, float eps, Tensor? ds) -> {_TRIPLE}",
        rows.layer_norm_backward, rows.fake_layer_norm_backward,
    ),
    Operator(
        "cross_entropy", f"(Tensor x, Tensor target, SymInt ignore_index, str reduction) -> {_TRIPLE}",
        rows.cross_entropy, rows.fake_cross_entropy, rows.keep_entropy, rows.entropy_gradient,
    ),
    Operator(
        "cross_entropy_backward",
        "(Tensor g, Tensor x, Tensor target, Tensor lse, Tensor? count, SymInt ignore_index) -> Tensor",
        rows.cross_entropy_backward, rows.fake_like(1),
    ),
    Operator(
        "linear_cross_entropy",
        f"(Tensor x, Tensor weight, Tensor target, Tensor? bias, {_LINEAR_LOSS}) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor)",
        linear_cross_entropy.forward, linear_cross_entropy.fake, linear_cross_entropy.keep,
        linear_cross_entropy.backward,
    ),
    Operator(
        "linear_cross_entropy_backward",
        f"(Tensor grad, Tensor x, Tensor weight, Tensor target, Tensor? bias, Tensor lse, {_LINEAR_LOSS}) -> {_TRIPLE}",
        linear_cross_entropy.forward_gradients, linear_cross_entropy.fake_gradients,
    ),
    Operator(
        "scaled_gradient", "(Tensor gradient, Tensor factor, float scale) -> Tensor", linear_cross_entropy.scaled,
        linear_cross_entropy.fake_scaled,
    ),
    Operator(
        "row_number", "(str call, Tensor x, bool keepdim) -> Tensor", rows.row_number, rows.fake_row_number,
        rows.keep_row, rows.row_gradient,
    ),
    *(
        Operator(f"{call}_backward", "(Tensor dy, Tensor x) -> Tensor", rows.number_backward(call), rows.fake_like(1))
        for call in NUMBERS_BY_KERNEL
    ),
)  # fmt: skip

register(OPERATORS)
