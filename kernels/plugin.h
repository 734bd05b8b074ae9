/* Kernels that are not in this repository: a shared library exports a table of variants, and
 * `bench_topp --plugin ./libmine.so --sweep` gates, times and reports them beside the built-in
 * ones. docs/plugins.md shows how; everything a plug-in needs stands in this header, topp.h and
 * gumbel.h.
 *
 * The library runs in a process of its own. It must export
 *     const struct topp_plugin *topp_plugin_table(void);
 * (TOPP_PLUGIN_TABLE below does), whose result and all it points to stay valid and unchanged. */
#ifndef TOPP_KERNELS_PLUGIN_H
#define TOPP_KERNELS_PLUGIN_H

#include "kernels/gumbel.h"
#include "kernels/topp.h"

/* Goes up whenever a struct of these three headers changes. A library built for another number is
 * refused. */
enum { TOPP_PLUGIN_ABI = 1 };

struct topp_plugin {
    /* The first two members stay where they are in every version. */
    uint32_t abi;          /* TOPP_PLUGIN_ABI */
    uint32_t struct_bytes; /* topp_plugin_struct_bytes(): a second look at the same question */
    const char *name;      /* of the library, for people: "mine 1.2" */
    /* NULL-terminated; NULL: none. Names are letters, digits, '_', '-' and '.', at most 40, and of
     * no built-in variant of the same kind and device. needs_boundary must be 0. */
    const struct topp_variant *const *topp;
    const struct gumbel_variant *const *gumbel;
};

static inline uint32_t topp_plugin_struct_bytes(void) {
    return (uint32_t)(sizeof(struct topp_problem) + 256 * sizeof(struct topp_variant) +
                      65536 * (sizeof(struct gumbel_problem) + sizeof(struct gumbel_variant)));
}

#ifdef __cplusplus
#define TOPP_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define TOPP_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* TOPP_PLUGIN_TABLE("mine 1.2", my_topp_list, my_gumbel_list): defines the exported function. The
 * lists are NULL-terminated arrays of pointers, or NULL. */
#define TOPP_PLUGIN_TABLE(NAME, TOPP, GUMBEL)                                                      \
    TOPP_PLUGIN_EXPORT const struct topp_plugin *topp_plugin_table(void);                          \
    TOPP_PLUGIN_EXPORT const struct topp_plugin *topp_plugin_table(void) {                         \
        static struct topp_plugin table;                                                           \
        table.abi = TOPP_PLUGIN_ABI;                                                               \
        table.struct_bytes = topp_plugin_struct_bytes();                                           \
        table.name = NAME;                                                                         \
        table.topp = TOPP;                                                                         \
        table.gumbel = GUMBEL;                                                                     \
        return &table;                                                                             \
    }

#endif
