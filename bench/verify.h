/* The steps of --verify. Each adds items to the list; none stops at the first difference. */
#ifndef TOPP_BENCH_VERIFY_H
#define TOPP_BENCH_VERIFY_H

#include "bench/external.h"
#include "bench/plugin.h"
#include "bench/record.h"
#include "oracle/receipt.h"

struct verification {
    const struct options *options;
    const json_t *receipt;          /* borrowed */
    char dir[4096];                 /* folder of the receipt and of the files it binds */
    json_t *results;                /* results.json, NULL when it cannot be read; owned */
    struct external_list externals; /* of the run; the plan's cells point at it */
    struct plugin_set plugins;      /* the same */
    bool plugin_here[PLUGINS_MOST]; /* the very library was given by --plugin: it may be run */
    struct plan plan;               /* resolved here */
    bool have_plan;                 /* the plan has the receipt's cells in the receipt's order */
    char captured_dir[4096];
    struct receipt_items items;
};

void verify_seal(struct verification *verification);
void verify_outputs(struct verification *verification); /* also loads results */
void verify_run(struct verification *verification);
void verify_sources(struct verification *verification);
void verify_shards(struct verification *verification);  /* of a merged run: their receipts */
void verify_here(struct verification *verification);    /* build, host, device of this machine */
void verify_plan(struct verification *verification);    /* profile, and the cells it resolves to */
void verify_cells(struct verification *verification);   /* receipt against results.json */
void verify_figures(struct verification *verification); /* samples -> hashes, medians, counts */
/* Other programs: their files, and the plan's variants for them. False: the list is unusable. */
bool verify_externals(struct verification *verification);
/* Plug-ins: their libraries' hashes, and the plan's variants for them. False: the list is unusable.
 */
bool verify_plugins(struct verification *verification);
/* Masks of the plug-in's cells, made again by its process. */
void verify_plugin_masks(struct verification *verification);
void verify_inputs(struct verification *verification); /* bytes, and masks where kernels run */

void verify_free(struct verification *verification);

/* An item that compares two JSON values; NULL stands for "missing". */
void verify_equal(struct verification *verification, const char *group, const char *name,
                  const json_t *bound, const json_t *found);

#endif
