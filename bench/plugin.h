/* Plug-ins as this process knows them: what each library says of itself in a process of its own
 * (kernels/plugin.h, docs/plugins.md). No library is ever loaded here. */
#ifndef TOPP_BENCH_PLUGIN_H
#define TOPP_BENCH_PLUGIN_H

#include "bench/sweep.h"
#include "oracle/receipt.h"

enum { PLUGINS_MOST = 16, PLUGIN_WHY_BYTES = 480, PLUGIN_PATH_BYTES = 4096 };

/* One library. Its variants' functions are stubs that refuse to run. */
struct plugin {
    char path[PLUGIN_PATH_BYTES]; /* absolute */
    char sha256[SHA256_HEX_BYTES];
    char refused[PLUGIN_WHY_BYTES]; /* why none of its kernels can be used; "" */
    json_t *table; /* "name", "variants"; NULL when refused. Holds the strings below; owned */
    struct topp_variant *topp; /* owned */
    size_t topp_count;
    struct gumbel_variant *gumbel; /* owned */
    size_t gumbel_count;
};

/* Those of one run; zeroed: none. Free with plugin_set_free. */
struct plugin_set {
    struct plugin *at;
    size_t count, refused;
    struct plan_extra *extras; /* all variants, for plan_options */
    size_t extra_count;
};

/* Asks each library for its table. A library that cannot be used is named on standard error and
 * marked as refused. TB_USAGE: a path that names no file, or stands twice. */
enum tb_status plugin_set_load(const char *const *paths, size_t count, struct plugin_set *set,
                               struct tb_error *error);
/* The same from run.plugins of results or a receipt, without looking at the libraries.
 * plugins: an array, or NULL or null for none. TB_UNREADABLE: not what plugin_set_to_json wrote. */
enum tb_status plugin_set_again(const json_t *plugins, struct plugin_set *set,
                                struct tb_error *error);
void plugin_set_free(struct plugin_set *set);

/* Adds other extra variants (programs of --external) behind the plug-ins'. TB_USAGE: a name that a
 * plug-in's kernel has. */
enum tb_status plugin_set_join(struct plugin_set *set, const struct plan_extra *others,
                               size_t count, struct tb_error *error);

/* run.plugins: an array of objects (docs/formats.md). New. */
json_t *plugin_set_to_json(const struct plugin_set *set);

/* Whose kernel a cell runs; NULL: a built-in one. set may be NULL. */
const struct plugin *plugin_of(const struct plugin_set *set, const struct cell *cell);

/* plugin_table.c: a table as its worker describes it ("name", "variants") -> variants, checked.
 * TB_UNREADABLE names what is wrong in it. Takes a reference to table. */
enum tb_status plugin_take_table(struct plugin *plugin, json_t *table, struct tb_error *error);

#endif
