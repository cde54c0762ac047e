"""Cases that only ``make slow`` runs: of tests that are run for a grid, those beyond a sample of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

CASES = (
    "unit/explore/test_explore_page.py::test_commands_of_the_document*",
    "unit/explore/test_explore_page.py::test_programs*",
    "unit/explore/test_explore_page.py::test_shipped_kernels*",
    "unit/interp/test_random_async.py::*[[]120]",
    "unit/interp/test_random_async.py::*[[]80]",
    "unit/interp/test_random_memory.py::*[[]40]",
    "unit/interp/test_random_sync.py::*[[]100]",
    "unit/interp/test_random_sync.py::*[[][68]0]",
    "unit/kernels/test_ampere_gemm.py::test_a_batch[[](33, 67, 37)-*-[13]]",
    "unit/kernels/test_ampere_gemm.py::test_majors[[](65, 67, 37)-('mn', 'k')]",
    "unit/kernels/test_ampere_gemm.py::test_what_becomes_of_the_sums[[]False-f32]",
    "unit/kernels/test_ampere_gemm.py::test_what_becomes_of_the_sums[[]True-bf16]",
    "unit/kernels/test_conv.py::test_convolution[[]32 channels, backwards]",
    "unit/kernels/test_conv.py::test_convolution[[]three dimensions]",
    "unit/kernels/test_exact_gemm.py::test_batches[[]*-shape1]",
    "unit/kernels/test_gemm_skinny.py::test_what_becomes_of_the_sums[[]20-264-y]",
    "unit/kernels/test_gemm_skinny.py::test_what_lies_between_rows_of_c_is_left_alone[[]130-False]",
    "unit/kernels/test_gemm_skinny.py::test_what_lies_between_rows_of_c_is_left_alone[[]71-True]",
    "unit/kernels/test_gemm_sm90.py::test_called_with_arrays[[]*a cluster of [248]*",
    "unit/kernels/test_gemm_sm90.py::test_called_with_arrays[[]256 rows in a cluster]",
    "unit/kernels/test_gemm_sm90.py::test_called_with_arrays[[]96 columns of a cluster*",
    "unit/kernels/test_gemm_sm90.py::test_called_with_arrays[[]columns, *[!8]]",
    "unit/kernels/test_gemm_sm90.py::test_product[[]*K-normal]",
    "unit/kernels/test_gemm_sm90.py::test_product[[]*major-normal]",
    "unit/kernels/test_gemm_sm90.py::test_product[[]batch-integers]",
    "unit/kernels/test_gemm_sm90.py::test_product[[]f[1p]*-normal]",
    "unit/kernels/test_gemm_types.py::test_integers_are_exact[[]*_*-i32]",
    "unit/kernels/test_gemm_types.py::test_integers_are_exact[[]*_*-ui8]",
    "unit/kernels/test_gemm_types.py::test_integers_are_exact[[]i8*-f32]",
    "unit/kernels/test_gemm_types.py::test_integers_are_exact[[]ui8*-bf16]",
    "unit/kernels/test_gemm_types.py::test_integers_are_exact[[]ui8*-f16]",
    "unit/kernels/test_gemm_types.py::test_sums_in_f16[[]deferred]",
    "unit/kernels/test_random_graphs.py::test_a_random_graph[[][12]?]",
    "unit/kernels/test_row_kernels.py::test_numbers_of_rows[[]logsumexp-f32]",
    "unit/kernels/test_row_kernels.py::test_numbers_of_rows[[]m*-f32]",
    "unit/kernels/test_row_kernels.py::test_numbers_of_rows[[]sum-bf16]",
    "unit/kernels/test_row_kernels.py::test_rows_of_a_block[[]*norm-bf16-5120]",
    "unit/kernels/test_row_kernels.py::test_rows_of_a_block[[]*softmax-f32-2057]",
    "unit/kernels/test_row_kernels.py::test_rows_of_any_length[[]*norm-f32]",
    "unit/kernels/test_row_kernels.py::test_rows_of_any_length[[]*softmax-bf16]",
    "unit/kernels/test_row_kernels.py::test_rows_shared_in_other_ways[[]layernorm-two*]",
    "unit/kernels/test_row_kernels.py::test_rows_shared_in_other_ways[[]rmsnorm-[!t]*]",
    "unit/kernels/test_row_kernels.py::test_rows_shared_in_other_ways[[]softmax-*]",
    "unit/kernels/test_row_kernels.py::test_what_norms_take[[]layernorm-?]",
    "unit/kernels/test_split_tf32.py::test_parts[[]a-False-shape[13]]",
    "unit/kernels/test_split_tf32.py::test_parts[[]a-True-shape[024]]",
    "unit/kernels/test_split_tf32.py::test_parts[[]b-False-shape[024]]",
    "unit/kernels/test_split_tf32.py::test_parts[[]b-True-shape[13]]",
    "unit/kernels/test_warp_gemm.py::test_products_are_exact[[]*-kmn]",
    "unit/kernels/test_warp_gemm.py::test_products_are_exact[[]*-mnmn]",
    "unit/kernels/test_warp_gemm.py::test_products_are_exact[[]f[86]*-mnk]",
    "unit/kernels/test_warp_gemm.py::test_products_are_exact[[]tf32-f32-mnk]",
    "unit/lang/test_differential.py::test_random_functions[[][6-9]]",
    "unit/op/test_arrays_on_the_cpu.py::test_alpha_is_zero[[]47-79-float[13]*]",
    "unit/op/test_arrays_on_the_cpu.py::test_alpha_is_zero[[]48-80-float32]",
    "unit/op/test_arrays_on_the_cpu.py::test_alpha_is_zero[[]48-80-float8*]",
    "unit/op/test_arrays_on_the_cpu.py::test_results_with_contiguous_columns[[]47-79-False]",
    "unit/op/test_conv_operators.py::test_gradients[[]silu]",
    "unit/op/test_convolutions.py::test_forward_and_gradients[[]f64, groups, backwards]",
    "unit/op/test_descriptions.py::test_plans_share_k[[]column-split[023]]",
    "unit/op/test_descriptions.py::test_plans_share_k[[]column-stream]",
    "unit/op/test_descriptions.py::test_the_table_of_instructions[[]16x8x16-f16-f16_1]",
    "unit/op/test_descriptions.py::test_the_table_of_instructions[[]16x8x32-i8-i32*saturate]",
    "unit/op/test_descriptions.py::test_the_table_of_instructions[[]16x8x8-[fb]*]",
    "unit/op/test_descriptions.py::test_the_table_of_instructions[[]64x64x16-f16-f16_1]",
    "unit/op/test_epilogue_dropout.py::test_kernels",
    "unit/op/test_epilogue_gradients.py::test_curves",
    "unit/op/test_grouped.py::test_an_epilogue_of_several_results[[]mma.sync]",
    "unit/op/test_grouped.py::test_types_without_wgmma[[]f32]",
    "unit/op/test_plans.py::test_batches[[]80-shapes[02]]",
    "unit/op/test_plans.py::test_layouts[[]f32-*-row]",
    "unit/op/test_products_on_the_cpu.py::test_what_is_copied[[]dtype0-*]",
    "unit/op/test_row_functions.py::test_beside_torch[[]333-torch.float32]",
    "unit/op/test_row_functions.py::test_beside_torch[[]64-torch.bfloat16]",
    "unit/op/test_row_gradients.py::test_gradients[[]333-torch.float32]",
    "unit/op/test_row_gradients.py::test_gradients[[]64-torch.float32]",
    "unit/op/test_row_gradients.py::test_gradients[[]7-torch.bfloat16]",
    "unit/op/test_torch_operators.py::test_activations[[]gelu_tanh]",
    "unit/op/test_torch_operators.py::test_activations[[]si*]",
    "unit/op/test_torch_operators.py::test_batches[[]?-1]",
    "unit/op/test_torch_operators.py::test_compile[[]False-eager]",
    "unit/op/test_torch_operators.py::test_compile[[]True-aot_eager]",
    "unit/op/test_torch_operators.py::test_opcheck[[][0249]-*-False]",
    "unit/op/test_torch_operators.py::test_opcheck[[][1368]-*-True]",
    "unit/op/test_torch_operators.py::test_products[[]dtype2-out2]",
    "unit/op/test_torch_operators.py::test_what_is_added[[]False-shape[124]]",
    "unit/op/test_torch_operators.py::test_what_is_added[[]True-shape[03]]",
    "unit/op/test_typed_products.py::test_any_rows_and_majors[[]1-1-1]",
    "unit/tools/test_gen_grammar.py::test_by_the_tokenizer_of_vs_code",
    "unit/tools/test_site_pages.py::*",
)
"""Patterns of names, as ``pytest`` prints them."""


def is_slow(name: str) -> bool:
    """Tell whether a case is one of these; ``name``: from the folder ``test`` on."""
    return any(fnmatchcase(name, pattern) for pattern in CASES)


def without_a_case(names: Iterable[str], files: Sequence[str]) -> list[str]:
    """Return the patterns that none of the names fits, of some files."""
    names = list(names)
    of_files = [p for p in CASES if p.partition("::")[0] in files]
    return [p for p in of_files if not any(fnmatchcase(name, p) for name in names)]
