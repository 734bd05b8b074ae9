#include "oracle/share.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum tb_status share_parse(const char *option, const char *text, double least, double most,
                           double *value, struct tb_error *error) {
    char *end;
    double number = strtod(text, &end);
    bool digits = text[0] >= '0' && text[0] <= '9';
    bool hex = digits && (text[1] == 'x' || text[1] == 'X');
    bool percent = end != text && !strcmp(end, "%");
    if (!digits || hex || !isfinite(number) || (!percent && *end))
        return tb_fail(error, TB_USAGE,
                       "%s: '%s' is no share: write it as 5%% or as 0.05 (with a point)", option,
                       text);
    if (!percent && number >= 1.0)
        return tb_fail(error, TB_USAGE, "%s: '%s' could mean %s%% or %g%%: write the percent sign",
                       option, text, text, 100.0 * number);
    number = percent ? number / 100.0 : number;
    if (!(number >= least) || !(number <= most))
        return tb_fail(error, TB_USAGE, "%s: '%s' is not from %g%% to %g%%", option, text,
                       100.0 * least, 100.0 * most);
    *value = number;
    return TB_OK;
}
