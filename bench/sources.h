/* What this program was made of: written at build time by ci/cmake/HashSources.cmake. */
#ifndef TOPP_BENCH_SOURCES_H
#define TOPP_BENCH_SOURCES_H

#include <stddef.h>

struct source_hash {
    const char *path;   /* relative to the source tree */
    const char *sha256; /* 64 hex digits, of the file's bytes as compiled */
};

struct build_info {
    const char *version;
    const char *commit; /* 40 hex digits, "-dirty" after them with local changes; "" outside git */
    const char *build_type;
    const char *c_compiler, *c_flags; /* compiler with its version; flags of the C sources */
    const char *cxx_compiler, *cxx_flags;
    const char *cuda_compiler, *cuda_flags; /* "" without CUDA */
    const char *source_dir; /* where the sources were; need not exist on this machine */
};

/* Every compiled source of kernels, oracle and bench and every header there, sorted by path. */
extern const struct source_hash topp_sources[];
extern const size_t topp_source_count;
extern const struct build_info topp_build;

#endif
