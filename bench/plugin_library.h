/* A plug-in's library as its worker process loads it. Nobody else includes this. */
#ifndef TOPP_BENCH_PLUGIN_LIBRARY_H
#define TOPP_BENCH_PLUGIN_LIBRARY_H

#include "kernels/plugin.h"
#include "oracle/status.h"

#include <jansson.h>

/* Loads it and checks what can be checked without running a kernel. TB_UNREADABLE says what is
 * wrong. The library stays loaded as long as the process lives. */
enum tb_status plugin_library_open(const char *path, const struct topp_plugin **table,
                                   struct tb_error *error);

/* "name" and "variants", as plugin_take_table() wants them. New. */
json_t *plugin_library_table(const struct topp_plugin *table);

/* NULL if there is none of that name for that device. */
const struct topp_variant *plugin_library_topp(const struct topp_plugin *table, const char *name,
                                               enum kernel_device device);
const struct gumbel_variant *plugin_library_gumbel(const struct topp_plugin *table,
                                                   const char *name, enum kernel_device device);

#endif
