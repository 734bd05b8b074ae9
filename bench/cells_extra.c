/* Variants that no registry lists, in the lists of a profile. */
#include "bench/cells.h"

#include <string.h>

const char *extra_name(const char *name) {
    static const char prefix[] = "plugin:";
    return name && !strncmp(name, prefix, sizeof prefix - 1) ? name + sizeof prefix - 1 : NULL;
}

bool entry_names_extras(const struct profile_entry *entry) {
    for (size_t i = 0; !entry->kernels.all && i < entry->kernels.count; i++)
        if (extra_name(entry->kernels.at[i]))
            return true;
    return false;
}

bool extra_fits(const struct plan_extra *extra, enum cell_kind kind, enum kernel_device device,
                const char *name) {
    if ((kind == CELL_TOPP) != (extra->variant != NULL))
        return false;
    const enum kernel_device own = extra->variant ? extra->variant->device : extra->gumbel->device;
    return own == device &&
           (!name || !strcmp(name, extra->variant ? extra->variant->name : extra->gumbel->name));
}
