/* A fake CUDA driver for tests of exported C. It loads no modules and passes the arguments of each launch to Python. */

#include <cuda.h>
#include <string.h>

typedef int (*launched)(const char *kernel, const unsigned *numbers, void **parameters);
typedef int (*encoded)(const long long *numbers, unsigned char *made);

static launched on_launch;
static encoded on_encode;

void fake_listen(launched launch, encoded encode) { on_launch = launch, on_encode = encode; }

CUresult cuGetErrorName(CUresult error, const char **text) { return *text = error ? "CUDA_ERROR" : "none", CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    *module = (CUmodule)image;
    return memcmp(image, "\177ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    *function = (CUfunction)name;
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)attribute, (void)device;
    return *value = 232448, CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    (void)attribute, (void)function;
    return *value = 1024, CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    int wanted = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 231424 : 1;
    return value == wanted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    unsigned numbers[15] = {config->gridDimX,  config->gridDimY,  config->gridDimZ, config->blockDimX,
                            config->blockDimY, config->blockDimZ, config->sharedMemBytes};
    if (extra || config->hStream != (CUstream)7) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            numbers[7] = a->value.clusterDim.x, numbers[8] = a->value.clusterDim.y;
            numbers[9] = a->value.clusterDim.z;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
            numbers[12] = a->value.preferredClusterDim.x, numbers[13] = a->value.preferredClusterDim.y;
            numbers[14] = a->value.preferredClusterDim.z;
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            numbers[10] = (unsigned)a->value.cooperative;
        else if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            numbers[11] = (unsigned)a->value.programmaticStreamSerializationAllowed;
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return on_launch((const char *)function, numbers, parameters) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

/* Python receives the parameters of a tensor map, and returns the number that identifies the map. */
static CUresult tell(CUtensorMap *map, const long long *numbers) {
    memset(map, 0, sizeof *map);
    return on_encode(numbers, (unsigned char *)map) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType element, cuuint32_t rank, void *address,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob) {
    long long numbers[64] = {rank, (long long)address, element, interleave, swizzle, l2, oob, 0};
    int n = 8;
    for (unsigned i = 0; i < rank; i++) numbers[n++] = (long long)extents[i];
    for (unsigned i = 0; i + 1 < rank; i++) numbers[n++] = (long long)strides[i];
    for (unsigned i = 0; i < rank; i++) numbers[n++] = box[i];
    for (unsigned i = 0; i < rank; i++) numbers[n++] = steps[i];
    return tell(map, numbers);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType element, cuuint32_t rank, void *address,
                                 const cuuint64_t *extents, const cuuint64_t *strides, const int *lower,
                                 const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob) {
    long long numbers[64] = {rank, (long long)address, element, interleave, swizzle, l2, oob, pixels};
    int n = 8;
    for (unsigned i = 0; i < rank; i++) numbers[n++] = (long long)extents[i];
    for (unsigned i = 0; i + 1 < rank; i++) numbers[n++] = (long long)strides[i];
    numbers[n++] = channels;
    for (unsigned i = 0; i + 2 < rank; i++) numbers[n++] = lower[i];
    for (unsigned i = 0; i + 2 < rank; i++) numbers[n++] = upper[i];
    for (unsigned i = 0; i < rank; i++) numbers[n++] = steps[i];
    return tell(map, numbers);
}
