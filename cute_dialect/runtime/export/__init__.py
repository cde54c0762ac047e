"""Export of kernels to C source over the CUDA driver, to object files and to other formats."""
