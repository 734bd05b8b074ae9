/* One sweep on several devices of one model: are they right alike, and how far apart in time, cell
 * by cell? A merged run has a device for each cell; other runs have one for all. */
#ifndef TOPP_CI_DEVICES_H
#define TOPP_CI_DEVICES_H

#include "ci/environment.h"

enum { DEVICE_NAME_BYTES = 96 };

struct device {
    char name[DEVICE_NAME_BYTES]; /* its UUID; of a CPU the host's name */
    size_t cells;                 /* with a time */
    size_t common;                /* of these the reference has too */
    /* Of its median over the reference's, over the common cells: NAN without. */
    double ratio, low, high; /* median, 5% and 95% of the cells */
    size_t beyond;           /* common cells whose ratio exceeds the margin either way */
};

/* A cell that at least two devices have. */
struct device_cell {
    const char *name;
    const double *medians; /* [devices] ns, NAN where it was not timed; in `all_medians` */
    double apart;          /* greatest over least */
    char gate[200]; /* in what the gate's outcome differs between devices, "" if it does not */
};

struct devices {
    struct device *list; /* the reference first; owned */
    size_t count;
    struct device_cell
        *cells; /* worst first: another outcome of the gate, then by `apart`; owned */
    size_t cell_count;
    size_t gate_differs; /* cells */
    double *all_medians; /* owned */
    struct differences differences;
    char refused[256]; /* why nothing was compared, "" when it was */
};

/* reference: a device's name; NULL: the one with the most cells, of equals the first by name.
 * TB_USAGE: no such device. The cells borrow from the sets. */
enum tb_status devices_find(const struct results_set *sets, size_t set_count, const char *reference,
                            double margin, struct devices *devices, struct tb_error *error);
void devices_free(struct devices *devices);

#endif
