#include "bench/plan_hash.h"

#include "oracle/receipt.h"

#include <stdlib.h>
#include <string.h>

void plan_hash_cells(const struct plan *plan, char sha256[65]) {
    json_t *cells = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        const struct cell *cell = &plan->cells[i];
        json_array_append_new(cells, json_pack("[s, I, i, b, s]", cell->name,
                                               (json_int_t)cell->seed, (int)cell->draws,
                                               (int)cell->timed, expectation_name(cell->expect)));
    }
    char *text = json_dumps(cells, JSON_COMPACT);
    sha256[0] = '\0';
    if (text)
        sha256_memory(text, strlen(text), sha256);
    free(text);
    json_decref(cells);
}

enum tb_status plan_hash_names(const struct plan *plan, char sha256[65], struct tb_error *error) {
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < plan->count; i++)
        bytes += strlen(plan->cells[i].name) + 1;
    char *text = malloc(bytes + 1);
    if (!text)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the names of %zu cells", plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        const size_t length = strlen(plan->cells[i].name);
        if (i > 0)
            text[at++] = '\n';
        memcpy(text + at, plan->cells[i].name, length);
        at += length;
    }
    sha256_memory(text, at, sha256);
    free(text);
    return TB_OK;
}
