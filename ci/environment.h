/* May two runs be compared at all? What differs, and what of it forbids a verdict. */
#ifndef TOPP_CI_ENVIRONMENT_H
#define TOPP_CI_ENVIRONMENT_H

#include "ci/results.h"

enum difference_weight {
    DIFFERENCE_NOTE,    /* worth knowing: a build, a host's name, another GPU of the same model */
    DIFFERENCE_IGNORED, /* would refuse, but the user named it in --ignore-environment */
    DIFFERENCE_REFUSES,
};

struct difference {
    enum difference_weight weight;
    char field[128];
    char base[96], new_side[96];
};

struct differences {
    struct difference *list; /* owned */
    size_t count;
    size_t refusing;
};

/* Appends every differing field of the two environments. ignored: fields, "all" for every one;
 * each that is matched is marked in used[]. false without memory. */
bool environment_compare(const struct results *base, const struct results *new_side,
                         const char *const *ignored, size_t ignored_count, bool *used,
                         struct differences *differences);

/* Appends the differing lines of two cells' settings, once a field. */
bool settings_compare(const struct result_cell *base, const struct result_cell *new_side,
                      const char *const *ignored, size_t ignored_count, bool *used,
                      struct differences *differences);

bool difference_add(struct differences *differences, enum difference_weight weight,
                    const char *field, const char *base, const char *new_side);
void differences_free(struct differences *differences);

#endif
