/* The part of a plan that a plug-in's worker needs, as JSON and back. Both ends are one program:
 * the form is no file format and has no version. */
#ifndef TOPP_BENCH_PLUGIN_PLAN_H
#define TOPP_BENCH_PLUGIN_PLAN_H

#include "bench/plugin.h"

struct topp_plugin; /* kernels/plugin.h */

/* Settings, and the cells of this cell's variant, in order. New. */
json_t *plugin_plan_to_json(const struct plan *plan, const struct cell *cell);

/* Cells point at the library's own variants. TB_INTERNAL: not what the above wrote, or a variant
 * that the library no longer has. Free with plan_free. */
enum tb_status plugin_plan_from_json(const json_t *json, const struct topp_plugin *table,
                                     struct plan *plan, struct tb_error *error);

#endif
