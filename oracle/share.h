/* A share as a person writes it, for all programs of the house. */
#ifndef TOPP_ORACLE_SHARE_H
#define TOPP_ORACLE_SHARE_H

#include "oracle/status.h"

/* A share: "5%" and "0.05" mean the same, one twentieth; a bare number of 1 or more is refused,
 * since 5 could mean 5% or 500%. The locale must be C for the point.
 * least <= value <= most; the message names the option. */
enum tb_status share_parse(const char *option, const char *text, double least, double most,
                           double *value, struct tb_error *error);

#endif
