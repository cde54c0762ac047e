/* Support code of exported kernels.  Integers are exact: a result that does not fit its type is an error. */

#define CUTE_LOCAL static __attribute__((unused))

__extension__ typedef __int128 cute_wide; /* holds the result of any operation on two int64_t */

enum { CUTE_PLANNED, CUTE_REFUSED, CUTE_FAILED };

static _Thread_local char cute_text[1024];

/* Store a message for ..._error() and return the status. */
CUTE_LOCAL int cute_say(int ended, const char *format, ...) {
    va_list more;
    va_start(more, format);
    vsnprintf(cute_text, sizeof cute_text, format, more);
    va_end(more);
    return ended;
}

CUTE_LOCAL CUresult cute_driver_error(CUresult code, const char *what) {
    const char *name = NULL, *text = NULL;
    if (code == CUDA_SUCCESS) return code;
    cuGetErrorName(code, &name);
    cuGetErrorString(code, &text);
    cute_say(0, "%s: %s (%s)", what, name ? name : "unknown error", text ? text : "");
    return code;
}

/* One launch of a call: kernel, shape and parameter bytes. */
struct cute_launch {
    int kernel;
    unsigned grid[3], block[3], cluster[3], preferred[3], smem;
    int clustered, cooperative, pdl;
    void *pointers[CUTE_PARAMETERS];
    _Alignas(64) unsigned char bytes[CUTE_PARAMETER_BYTES];
};

struct cute_plan {
    int count;
    struct cute_launch launches[CUTE_LAUNCHES];
};

/* Description of a tensor map, innermost dimension first; with pixels, for cuTensorMapEncodeIm2col, or with wide = 1 or
   2 for cuTensorMapEncodeIm2colWide. */
struct cute_map {
    int rank;
    uint64_t address;
    int64_t extents[5], strides[4], box[5], steps[5], lower[3], upper[3], pixels, wide, codes[5];
};

CUTE_LOCAL int cute_fits(cute_wide value, int width) {
    return -((cute_wide)1 << (width - 1)) <= value && value < (cute_wide)1 << (width - 1);
}

CUTE_LOCAL int cute_overflow(const char *host, const char *name, int64_t a, int64_t b, int width) {
    return cute_say(CUTE_REFUSED, "host function @%s: %s of %lld and %lld does not fit i%d", host, name, (long long)a,
                    (long long)b, width);
}

/* Interpret the low bits as a signed number of this width; a 1-bit value is 0 or 1. */
CUTE_LOCAL int64_t cute_signed(uint64_t value, int width) {
    if (width == 1) return value & 1;
    return (int64_t)(value << (64 - width)) >> (64 - width);
}

CUTE_LOCAL uint64_t cute_unsigned(int64_t value, int width) {
    return width == 64 ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << width) - 1);
}

CUTE_LOCAL cute_wide cute_floor_division(int64_t a, int64_t b) {
    cute_wide q = (cute_wide)a / b;
    return (cute_wide)a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

CUTE_LOCAL cute_wide cute_ceiling_division(int64_t a, int64_t b) {
    cute_wide q = (cute_wide)a / b;
    return (cute_wide)a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q;
}

/* Shift exactly; the result of a shift beyond 63 bits fits no type. */
CUTE_LOCAL cute_wide cute_left_shift(int64_t a, int64_t b) {
    return (cute_wide)a * ((cute_wide)1 << (b < 63 ? b : 63));
}

/* Distance between the first and last element of a mode, in elements. */
CUTE_LOCAL cute_wide cute_reach(int64_t extent, int64_t stride) {
    return extent > 1 ? (cute_wide)(extent - 1) * (stride < 0 ? -(cute_wide)stride : stride) : 0;
}

/* Convert to the bits of a half, rounded to nearest even. */
CUTE_LOCAL uint16_t cute_half(double value) {
    uint64_t bits, kept, lost, half;
    memcpy(&bits, &value, 8);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 1024) return mantissa ? sign | 0x7e00 : sign | 0x7c00;
    if (exponent > 15) return sign | 0x7c00;
    int shift = exponent < -14 ? 42 - 14 - exponent : 42;
    if (shift > 60) return sign;
    mantissa |= (uint64_t)1 << 52;
    kept = mantissa >> shift;
    lost = mantissa & (((uint64_t)1 << shift) - 1);
    half = (uint64_t)1 << (shift - 1);
    if (lost > half || (lost == half && (kept & 1))) kept++;
    return sign | (uint16_t)(exponent < -14 ? kept : kept + ((uint64_t)(exponent + 14) << 10));
}

CUTE_LOCAL double cute_half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023, sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

CUTE_LOCAL uint16_t cute_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7f800000) == 0x7f800000 && bits & 0x7fffff) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

CUTE_LOCAL void cute_put(struct cute_launch *launch, size_t at, const void *value, size_t size) {
    memcpy(launch->bytes + at, value, size);
}

CUTE_LOCAL void cute_put_integer(struct cute_launch *launch, size_t at, int64_t value, size_t size) {
    cute_put(launch, at, &value, size);
}

/* Bind the extent of a mode: a multiple of its static leaves; the dynamic leaf must be a multiple of div. */
CUTE_LOCAL int cute_extent(int64_t *leaf, int64_t extent, int64_t known, int64_t div, int64_t most, const char *label,
                           const char *type) {
    if (extent < 0 || extent % known)
        return cute_say(CUTE_REFUSED, "%s: expected an extent that is a multiple of %lld, got %lld (%s)", label,
                        (long long)known, (long long)extent, type);
    *leaf = extent / known;
    if (*leaf % div)
        return cute_say(CUTE_REFUSED, "%s: expected an extent that is a multiple of %lld, got %lld (%s)", label,
                        (long long)div, (long long)*leaf, type);
    if (*leaf > most)
        return cute_say(CUTE_REFUSED, "%s: extent %lld does not fit its leaf (at most %lld) (%s)", label,
                        (long long)*leaf, (long long)most, type);
    return CUTE_PLANNED;
}

CUTE_LOCAL int cute_equal(int64_t value, int64_t wanted, const char *label, const char *type) {
    if (value == wanted) return CUTE_PLANNED;
    return cute_say(CUTE_REFUSED, "%s: expected %lld, got %lld (%s)", label, (long long)wanted, (long long)value, type);
}

/* Check width and divisor of a leaf; an unused leaf is set to 0 if it violates them. */
CUTE_LOCAL int cute_promise(int64_t *leaf, int width, int64_t div, int unused, const char *label, const char *type) {
    if (unused && (*leaf % div || !cute_fits(*leaf, width))) *leaf = 0;
    if (*leaf % div)
        return cute_say(CUTE_REFUSED, "%s: expected a multiple of %lld, got %lld (%s)", label, (long long)div,
                        (long long)*leaf, type);
    if (!cute_fits(*leaf, width))
        return cute_say(CUTE_REFUSED, "%s: %lld does not fit %d bits (%s)", label, (long long)*leaf, width, type);
    return CUTE_PLANNED;
}

/* Check a leaf and write it to its parameter. */
CUTE_LOCAL int cute_leaf(struct cute_launch *launch, size_t at, int64_t leaf, int width, int64_t div, int unused,
                         const char *label, const char *type) {
    int found = cute_promise(&leaf, width, div, unused, label, type);
    if (found == CUTE_PLANNED) cute_put_integer(launch, at, leaf, (size_t)width / 8);
    return found;
}

CUTE_LOCAL int cute_pointer(struct cute_launch *launch, size_t at, uint64_t address, uint64_t alignment,
                            const char *label, const char *type) {
    if (address % alignment)
        return cute_say(CUTE_REFUSED, "%s: expected an address that is a multiple of %llu bytes, got %#llx (%s)", label,
                        (unsigned long long)alignment, (unsigned long long)address, type);
    cute_put_integer(launch, at, (int64_t)address, 8);
    return CUTE_PLANNED;
}

/* Encode a tensor map into a parameter.  The stride of a dimension of extent 1 is unused and may be anything. */
CUTE_LOCAL int cute_encode(struct cute_launch *launch, size_t at, const struct cute_map *map, const char *label,
                       const char *type) {
    static const int64_t units[3] = {16, 16, 32};
    /* Maps that unpack 4-bit or 6-bit elements: codes 14 and 15 of CUtensorMapDataType. */
    int64_t unit = map->codes[0] >= 14 ? 32 : units[map->codes[1]];
    cuuint64_t extents[5] = {0}, strides[4] = {16};
    cuuint32_t box[5] = {0}, steps[5] = {0};
    int lower[3] = {0}, upper[3] = {0}; /* im2col only */
    CUtensorMap made;
    CUresult code;
    if (map->address % (uint64_t)unit)
        return cute_say(CUTE_REFUSED,
                        "%s: TMA does not support this array: address: expected an address that is a multiple of %lld, got %#llx"
                        " (%s)",
                        label, (long long)unit, (unsigned long long)map->address, type);
    for (int i = 0; i < map->rank; i++) {
        extents[i] = (cuuint64_t)map->extents[i];
        box[i] = (cuuint32_t)map->box[i];
        steps[i] = (cuuint32_t)map->steps[i];
        if (map->extents[i] < 1 || map->extents[i] > (int64_t)1 << 32)
            return cute_say(CUTE_REFUSED, "%s: TMA does not support this array: dimension %d: expected an extent of 1 to 2^32,"
                            " got %lld (%s)", label, i, (long long)map->extents[i], type);
    }
    for (int i = 1; i < map->rank; i++) {
        int64_t stride = map->extents[i] == 1 ? unit : map->strides[i - 1];
        if (stride <= 0 || stride % unit)
            return cute_say(CUTE_REFUSED, "%s: TMA does not support this array: dimension %d: expected a stride that is a"
                            " positive multiple of %lld bytes, got %lld (%s)", label, i, (long long)unit,
                            (long long)stride, type);
        strides[i - 1] = (cuuint64_t)stride;
    }
    for (int i = 0; i < map->rank - 2; i++) {
        lower[i] = (int)map->lower[i];
        upper[i] = (int)map->upper[i];
    }
#if CUTE_IM2COL_WIDE
    if (map->wide)
        code = cuTensorMapEncodeIm2colWide(&made, (CUtensorMapDataType)map->codes[0], (cuuint32_t)map->rank,
                                           (void *)map->address, extents, strides, lower[0], upper[0],
                                           (cuuint32_t)map->box[0], (cuuint32_t)map->pixels, steps,
                                           (CUtensorMapInterleave)map->codes[1],
                                           (CUtensorMapIm2ColWideMode)(map->wide - 1),
                                           (CUtensorMapSwizzle)map->codes[2], (CUtensorMapL2promotion)map->codes[3],
                                           (CUtensorMapFloatOOBfill)map->codes[4]);
    else
#endif
    if (map->pixels)
        code = cuTensorMapEncodeIm2col(&made, (CUtensorMapDataType)map->codes[0], (cuuint32_t)map->rank,
                                       (void *)map->address, extents, strides, lower, upper, (cuuint32_t)map->box[0],
                                       (cuuint32_t)map->pixels, steps, (CUtensorMapInterleave)map->codes[1],
                                       (CUtensorMapSwizzle)map->codes[2], (CUtensorMapL2promotion)map->codes[3],
                                       (CUtensorMapFloatOOBfill)map->codes[4]);
    else
        code = cuTensorMapEncodeTiled(&made, (CUtensorMapDataType)map->codes[0], (cuuint32_t)map->rank,
                                      (void *)map->address, extents, strides, box, steps,
                                      (CUtensorMapInterleave)map->codes[1], (CUtensorMapSwizzle)map->codes[2],
                                      (CUtensorMapL2promotion)map->codes[3], (CUtensorMapFloatOOBfill)map->codes[4]);
    if (code != CUDA_SUCCESS)
        return cute_say(CUTE_REFUSED, "%s: TMA does not support this array: the driver refuses it (%s)", label, type);
    cute_put(launch, at, &made, sizeof made);
    return CUTE_PLANNED;
}

/* Check the launch shape against the limits of CUDA and of the kernel. */
CUTE_LOCAL int cute_shape(struct cute_launch *launch, const char *kernel, const int64_t grid[3], const int64_t block[3],
                      const int64_t cluster[3], int64_t smem, const int64_t wanted[3], int64_t most, int empty) {
    static const int64_t limits[3] = {2147483647, 65535, 65535};
    for (int i = 0; i < 3; i++) {
        if (wanted && wanted[i] != block[i])
            return cute_say(CUTE_FAILED, "@%s is compiled for blocks of (%lld, %lld, %lld)", kernel,
                            (long long)wanted[0], (long long)wanted[1], (long long)wanted[2]);
        if (block[i] < 1 || block[i] > 1024)
            return cute_say(CUTE_FAILED, "block of @%s: expected 1 to 1024 threads, got %lld", kernel,
                            (long long)block[i]);
        if (!empty && (grid[i] < 1 || grid[i] > limits[i]))
            return cute_say(CUTE_FAILED, "grid of @%s: expected 1 to %lld blocks, got %lld", kernel,
                            (long long)limits[i], (long long)grid[i]);
        if (cluster && (cluster[i] < 1 || grid[i] % cluster[i]))
            return cute_say(CUTE_FAILED, "grid of @%s: expected a multiple of the cluster's %lld blocks, got %lld",
                            kernel, (long long)cluster[i], (long long)grid[i]);
        launch->grid[i] = (unsigned)grid[i];
        launch->block[i] = (unsigned)block[i];
        launch->cluster[i] = cluster ? (unsigned)cluster[i] : 1;
        launch->preferred[i] = 0;
    }
    if (block[0] * block[1] * block[2] > most || block[2] > 64)
        return cute_say(CUTE_FAILED, "@%s is compiled for at most %lld threads per block, got %lld", kernel,
                        (long long)most, (long long)(block[0] * block[1] * block[2]));
    if (smem < 0 || smem > 1 << 30)
        return cute_say(CUTE_FAILED, "shared memory of @%s: expected 0 to 2^30 bytes, got %lld", kernel,
                        (long long)smem);
    launch->smem = (unsigned)smem;
    return CUTE_PLANNED;
}

/* Load a kernel and opt in to the largest shared memory per block, and to large clusters if needed. */
CUTE_LOCAL CUresult cute_function(CUfunction *function, CUmodule module, const char *name, int large_cluster) {
    CUdevice device;
    int most = 0, fixed = 0;
    CUresult code = cuModuleGetFunction(function, module, name);
    if (code == CUDA_SUCCESS) code = cuCtxGetDevice(&device);
    if (code == CUDA_SUCCESS)
        code = cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    if (code == CUDA_SUCCESS) code = cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, *function);
    if (code == CUDA_SUCCESS)
        code = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - fixed);
    if (code == CUDA_SUCCESS && large_cluster)
        code = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return cute_driver_error(code, name);
}

CUTE_LOCAL CUresult cute_launch_all(const CUfunction *kernels, struct cute_plan *plan, CUstream stream) {
    for (int i = 0; i < plan->count; i++) {
        struct cute_launch *launch = &plan->launches[i];
        CUlaunchAttribute attributes[4];
        CUlaunchConfig config;
        memset(attributes, 0, sizeof attributes);
        memset(&config, 0, sizeof config);
        config.gridDimX = launch->grid[0], config.gridDimY = launch->grid[1], config.gridDimZ = launch->grid[2];
        config.blockDimX = launch->block[0], config.blockDimY = launch->block[1], config.blockDimZ = launch->block[2];
        config.sharedMemBytes = launch->smem;
        config.hStream = stream;
        config.attrs = attributes;
        if (launch->clustered) {
            attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[config.numAttrs].value.clusterDim.x = launch->cluster[0];
            attributes[config.numAttrs].value.clusterDim.y = launch->cluster[1];
            attributes[config.numAttrs++].value.clusterDim.z = launch->cluster[2];
        }
        if (launch->preferred[0]) {
            /* CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION of CUDA 12.8, whose value is like clusterDim. */
            attributes[config.numAttrs].id = (CUlaunchAttributeID)11;
            attributes[config.numAttrs].value.clusterDim.x = launch->preferred[0];
            attributes[config.numAttrs].value.clusterDim.y = launch->preferred[1];
            attributes[config.numAttrs++].value.clusterDim.z = launch->preferred[2];
        }
        if (launch->cooperative) {
            attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attributes[config.numAttrs++].value.cooperative = 1;
        }
        if (launch->pdl) {
            attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
        }
        CUresult code = cuLaunchKernelEx(&config, kernels[launch->kernel], launch->pointers, NULL);
        if (code != CUDA_SUCCESS) return cute_driver_error(code, "cuLaunchKernelEx");
    }
    return CUDA_SUCCESS;
}
