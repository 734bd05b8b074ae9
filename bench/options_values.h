/* Inside of options_parse(): values of options. Each takes the row that the value belongs to, and
 * returns 0, or EINVAL with a message that names option, value and what it should be. */
#ifndef TOPP_BENCH_OPTIONS_VALUES_H
#define TOPP_BENCH_OPTIONS_VALUES_H

#include "bench/options.h"

#include <argp.h>

/* "--NAME: 'VALUE' is not WANT". */
error_t value_refuse(struct tb_error *error, const struct option_row *row, const char *value,
                     const char *want);
error_t value_integer(struct tb_error *error, const struct option_row *row, const char *text,
                      int64_t least, int64_t most, int64_t *value);
error_t value_small(struct tb_error *error, const struct option_row *row, const char *text,
                    int32_t least, int32_t most, int32_t *value);

/* The position of `text` among the alternatives "a|b|c" of the row's argument, -1 if none. */
int value_choice_of(const struct option_row *row, const char *text);
error_t value_choice(struct tb_error *error, const struct option_row *row, const char *text,
                     int *choice);

error_t value_shard(struct tb_error *error, const struct option_row *row, const char *text,
                    struct options *options);
error_t value_devices(struct tb_error *error, const struct option_row *row, const char *text,
                      struct options *options);
error_t value_p(struct tb_error *error, const struct option_row *row, const char *text,
                struct options *options);

#endif
