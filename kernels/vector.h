/* Lets gcc compile one plain loop for several instruction sets and pick at load time. */
#ifndef TOPP_KERNELS_VECTOR_H
#define TOPP_KERNELS_VECTOR_H

/* Sanitizers instrument the resolver, which runs before their run-time is up: no clones there. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTOR_CLONES
#endif

#endif
