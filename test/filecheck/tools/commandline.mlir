// What is wrong with the command line is said in one line, with the nearest name; exit 1.
// RUN: not cute-opt %s --cannonicalize 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not cute-opt %s --pipeline=nvptix 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: not cute-opt %s --pipeline=nvptx=chop=sm_90 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not cute-opt %s --pass-pipeline='builtin.module(cse,gpu.module(csee))' 2>&1 | filecheck %s --check-prefix=TEXT
// RUN: not cute-opt %s --pass-pipeline='builtin.module(cse' 2>&1 | filecheck %s --check-prefix=CLOSE
// RUN: not cute-opt %s --cse=deep=1 2>&1 | filecheck %s --check-prefix=NOOPTION
// RUN: not cute-opt %s --pass-pipeline='builtin.module(gpu.module(base-prepare))' 2>&1 | filecheck %s --check-prefix=ANCHOR
// RUN: not cute-opt %s --base-prepare --cute-to-base 2>&1 | filecheck %s --check-prefix=ORDER
// RUN: not cute-opt %s --dialects=base --cute-fold-static 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: not cute-opt %s %s 2>&1 | filecheck %s --check-prefix=TWO
// RUN: not cute-opt %S/commandlin.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not cute-opt %s --emit=sass 2>&1 | filecheck %s --check-prefix=EMIT
// RUN: not cute-opt %s --mlir-print-ir-tree-dir=%s/not 2>&1 | filecheck %s --check-prefix=TREE
// RUN: not cute-opt %s -o %s/not/there 2>&1 | filecheck %s --check-prefix=OUTPUT

// PASS: cute-opt: error: unknown option or pass '--cannonicalize'; did you mean 'canonicalize'?
// PIPELINE: cute-opt: error: unknown pipeline 'nvptix'; did you mean 'nvptx'? (known: nvptx, host, base)
// OPTION: cute-opt: error: pipeline 'nvptx' has no option 'chop'; did you mean 'chip'?
// TEXT: <--pass-pipeline>:1:31: error: unknown pass 'csee'; did you mean 'cse'?
// TEXT-NEXT: builtin.module(cse,gpu.module(csee))
// TEXT-NEXT: {{^ *\^~~~$}}
// CLOSE: <--pass-pipeline>:1:15: error: expected ')' to close this list of passes
// NOOPTION: cute-opt: error: pass 'cse' has no option 'deep' (its options: none)
// ANCHOR: error: pass 'base-prepare' runs on builtin.module, not on gpu.module
// ORDER: cute-opt: error: pass 'cute-to-base' cannot run after 'base-prepare'
// SCOPE: cute-opt: error: pass 'cute-fold-static' is not available with --dialects=base
// TWO: cute-opt: error: expected at most one input file, got 2
// MISSING: commandlin.mlir: error: cannot open the input file: No such file or directory; did you mean 'commandline.mlir'?
// EMIT: cute-opt: error: option '--emit': expected one of mlir, llvm, ptx, cubin, got 'sass'
// TREE: cute-opt: error: option '--mlir-print-ir-tree-dir': cannot write {{.*}}: Not a directory
// OUTPUT: error: cannot write the output file: Not a directory
func.func @empty() {
  return
}
