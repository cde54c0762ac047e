# ruff: noqa: I001 (sorting would make a statement of each name)
"""The public names of the operations: each from the module that defines it."""

from cute_dialect.op import (
    compiler as compiler,
    distributed as distributed,
    emit as emit,
    epilogue as epilogue,
    nn as nn,
)
from cute_dialect.op.functions.attention import (
    attention as attention,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from cute_dialect.op.functions.attention import (
    attention_backward as attention_backward,
    attention_dropout_mask as attention_dropout_mask,
)
from cute_dialect.op.functions.attention import (
    merge_attention as merge_attention,
    merge_attention_ as merge_attention_,
)
from cute_dialect.op.functions.cascade_attention import (
    cascade_attention as cascade_attention,
)
from cute_dialect.op.functions.flex_attention import (
    create_block_mask as create_block_mask,
    flex_attention as flex_attention,
)
from cute_dialect.op.functions.gated import (
    gated as gated,
)
from cute_dialect.op.functions.mla import (
    mla_decode as mla_decode,
)
from cute_dialect.op.functions.packed_weights import (
    mm_packed as mm_packed,
    pack_awq as pack_awq,
    pack_gptq as pack_gptq,
    pack_weight as pack_weight,
    unpack_weight as unpack_weight,
)
from cute_dialect.op.problems.compressed_weights import (
    PackedWeight as PackedWeight,
)
from cute_dialect.op.functions.quantize import (
    dequantize as dequantize,
    quantize as quantize,
)
from cute_dialect.op.functions.routing import (
    combine as combine,
    dispatch as dispatch,
    route as route,
)
from cute_dialect.op.functions.sampling import (
    sample as sample,
    topk as topk,
)
from cute_dialect.op.functions.embedding import (
    embedding as embedding,
)
from cute_dialect.op.functions.optimizers import (
    adamw_ as adamw_,
)
from cute_dialect.op.functions.sparse_weights import (
    compress_2_4 as compress_2_4,
    expand_2_4 as expand_2_4,
    mm_sparse as mm_sparse,
)
from cute_dialect.op.problems.compressed_weights import (
    SparseWeight as SparseWeight,
)
from cute_dialect.op.functions.rope import (
    append_kv as append_kv,
    rope as rope,
)
from cute_dialect.op.plans.attention import (
    Attention as Attention,
    AttentionArguments as AttentionArguments,
)
from cute_dialect.op.kernel_prefetch import (
    Prefetch as Prefetch,
    prefetch as prefetch,
)
from cute_dialect.op.select.kernel_choice import (
    Choice as Choice,
    Problem as Problem,
)
from cute_dialect.op.functions.conv import (
    conv1d as conv1d,
    conv1d_input as conv1d_input,
    conv1d_weight as conv1d_weight,
    conv2d as conv2d,
    conv2d_input as conv2d_input,
    conv2d_weight as conv2d_weight,
    conv3d as conv3d,
    conv3d_input as conv3d_input,
    conv3d_weight as conv3d_weight,
)
from cute_dialect.op.pycutlass.conv_arguments import (
    Conv2dArguments as Conv2dArguments,
)
from cute_dialect.op.pycutlass.conv import (
    Conv2dProblemSize as Conv2dProblemSize,
    ConvKind as ConvKind,
    ConvMode as ConvMode,
    IteratorAlgorithm as IteratorAlgorithm,
    MatrixCoord as MatrixCoord,
    StrideSupport as StrideSupport,
    Tensor4DCoord as Tensor4DCoord,
)
from cute_dialect.op.pycutlass.conv import (
    Conv2dOperation as Conv2dOperation,
)
from cute_dialect.op.plans.conv import (
    Conv2d as Conv2d,
    Conv2dDgrad as Conv2dDgrad,
    Conv2dFprop as Conv2dFprop,
    Conv2dWgrad as Conv2dWgrad,
)
from cute_dialect.op.functions.elementwise import (
    Elementwise as Elementwise,
    add as add,
    div as div,
    elementwise as elementwise,
    mul as mul,
    sub as sub,
)
from cute_dialect.op.functions.element_functions import (
    abs as abs,
    clamp as clamp,
    elu as elu,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    gelu as gelu,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    leaky_relu as leaky_relu,
    log as log,
    maximum as maximum,
    minimum as minimum,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    silu as silu,
    softplus as softplus,
    sqrt as sqrt,
    tanh as tanh,
    where as where,
)
from cute_dialect.errors import (
    OpError as OpError,
)
from cute_dialect.op.errors import (
    AlignmentError as AlignmentError,
    ArgumentError as ArgumentError,
    DeviceError as DeviceError,
    DistributedError as DistributedError,
    DtypeError as DtypeError,
    EpilogueError as EpilogueError,
    LayoutError as LayoutError,
    OptionError as OptionError,
    ShapeError as ShapeError,
    UnsupportedError as UnsupportedError,
)
from cute_dialect.op.functions.gemm import (
    addmm as addmm,
    baddbmm as baddbmm,
    int_mm as int_mm,
    linear as linear,
    matmul as matmul,
)
from cute_dialect.op.functions.gemm import (
    bmm as bmm,
    mm as mm,
)
from cute_dialect.op.functions.gemm_array import (
    mm_array as mm_array,
)
from cute_dialect.op.functions.grouped import (
    grouped_mm as grouped_mm,
)
from cute_dialect.op.functions.linear_cross_entropy import (
    linear_cross_entropy as linear_cross_entropy,
)
from cute_dialect.op.functions.scaled import (
    scaled_grouped_mm as scaled_grouped_mm,
)
from cute_dialect.op.explanations.gemm import (
    Explanation as Explanation,
)
from cute_dialect.op.functions.explain import (
    explain as explain,
)
from cute_dialect.op.functions.rows import (
    cross_entropy as cross_entropy,
    layer_norm as layer_norm,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    rms_norm as rms_norm,
    softmax as softmax,
    sum as sum,
    transpose as transpose,
)
from cute_dialect.op.functions.block_scaled import (
    scale_blocks as scale_blocks,
)
from cute_dialect.op.functions.scaled import (
    scaled_mm as scaled_mm,
)
from cute_dialect.op.select.gemm_dispatch import (
    choose as choose,
)
from cute_dialect.op.pycutlass.arguments import (
    GemmArguments as GemmArguments,
)
from cute_dialect.op.select.descriptions import (
    BatchedIdentitySwizzle as BatchedIdentitySwizzle,
    GemmCoord as GemmCoord,
    HorizontalSwizzle as HorizontalSwizzle,
    IdentitySwizzle1 as IdentitySwizzle1,
    IdentitySwizzle2 as IdentitySwizzle2,
    IdentitySwizzle4 as IdentitySwizzle4,
    IdentitySwizzle8 as IdentitySwizzle8,
    MathInstruction as MathInstruction,
    MathOperation as MathOperation,
    Mode as Mode,
    OpcodeClass as OpcodeClass,
    SchedulerMode as SchedulerMode,
    SplitKMode as SplitKMode,
    StridedDgradIdentitySwizzle1 as StridedDgradIdentitySwizzle1,
    StridedDgradIdentitySwizzle4 as StridedDgradIdentitySwizzle4,
    TensorDescription as TensorDescription,
    ThreadblockSwizzleStreamK as ThreadblockSwizzleStreamK,
    TileDescription as TileDescription,
)
from cute_dialect.op.arrays.dtypes import (
    ColumnMajor as ColumnMajor,
    ColumnMajorInterleaved32 as ColumnMajorInterleaved32,
    LayoutType as LayoutType,
    RowMajor as RowMajor,
    RowMajorInterleaved32 as RowMajorInterleaved32,
    TensorNHWC as TensorNHWC,
    bfloat16 as bfloat16,
    e4m3 as e4m3,
    e5m2 as e5m2,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int32 as int32,
    int8 as int8,
    tfloat32 as tfloat32,
    uint8 as uint8,
    void as void,
)
from cute_dialect.op.pycutlass.functors import (
    FastLinearCombinationClamp as FastLinearCombinationClamp,
    LinearCombination as LinearCombination,
    LinearCombinationClamp as LinearCombinationClamp,
    LinearCombinationGeneric as LinearCombinationGeneric,
)
from cute_dialect.op.arrays.memory import (
    get_allocated_size as get_allocated_size,
    get_memory_pool as get_memory_pool,
)
from cute_dialect.op.pycutlass.grouped import (
    GemmGroupedArguments as GemmGroupedArguments,
)
from cute_dialect.op.pycutlass.grouped import (
    GemmOperationGrouped as GemmOperationGrouped,
)
from cute_dialect.op.plans.grouped import (
    GroupedGemm as GroupedGemm,
)
from cute_dialect.op.pycutlass.operation import (
    GemmOperationUniversal as GemmOperationUniversal,
)
from cute_dialect.op.plans.gemm import (
    Gemm as Gemm,
)
from cute_dialect.op.pycutlass.operation import (
    ReductionArguments as ReductionArguments,
    ReductionOperation as ReductionOperation,
)
from cute_dialect.op.plans.scaled import (
    ScaledGemm as ScaledGemm,
)
from cute_dialect.op.execute.saved import (
    load as load,
)
from cute_dialect.op.tuning import (
    Tuned as Tuned,
)
from cute_dialect.op.functions.tune import (
    tune as tune,
)

OpClass = OpcodeClass
