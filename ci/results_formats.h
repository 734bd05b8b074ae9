/* Readers of single formats, for results.c alone. */
#ifndef TOPP_CI_RESULTS_FORMATS_H
#define TOPP_CI_RESULTS_FORMATS_H

#include "ci/json_text.h"
#include "ci/results.h"

/* results.json in any layout, read in place: nothing is held but what is kept of each cell. */
enum tb_status read_topp_results(const struct json_text *text, const struct read_options *options,
                                 struct results *results, struct tb_error *error);

/* Google Benchmark's JSON: root is borrowed. */
enum tb_status read_gbench(const struct json_text *text, json_t *root,
                           const struct read_options *options, struct results *results,
                           struct tb_error *error);

/* Text of a member, "" when absent or null; cut to fit. */
void member_text(const json_t *object, const char *key, char *text, size_t text_bytes);
/* A number, or `absent` when the member is absent or null. */
double member_number(const json_t *object, const char *key, double absent);

#endif
