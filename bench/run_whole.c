/* Resuming a run that is whole: its files stay as they are, since a merged run's receipt, or a copy
 * elsewhere, may bind their bytes. */
#include "bench/run_state.h"
#include "oracle/receipt.h"

#include <string.h>

static bool ended(const struct journal *journal) {
    const json_t *lines = journal_lines(journal);
    const size_t count = json_array_size(lines);
    return count > 0 && json_is_true(json_object_get(json_array_get(lines, count - 1), "end"));
}

static bool outputs_stand(const char *folder, const json_t *outputs) {
    const size_t count = json_array_size(outputs);
    for (size_t i = 0; i < count; i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *name = json_string_value(json_object_get(output, "file"));
        const char *bound = json_string_value(json_object_get(output, "sha256"));
        char path[JOURNAL_PATH_BYTES], hex[SHA256_HEX_BYTES];
        if (!name || !bound || strchr(name, '/') ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path ||
            sha256_file(path, hex, NULL) != TB_OK || strcmp(hex, bound) != 0)
            return false;
    }
    return count > 0;
}

bool run_is_whole(const struct run_state *state) {
    char path[JOURNAL_PATH_BYTES];
    json_t *receipt = NULL;
    if (!journal_resumed(state->journal) || !ended(state->journal) ||
        state->run->gbench_flag_count > 0 || /* its report is to be written anew */
        (size_t)snprintf(path, sizeof path, "%s/receipt.json", state->run->out_dir) >=
            sizeof path ||
        receipt_read(path, &receipt, NULL) != TB_OK)
        return false;
    const char *id = json_string_value(json_object_get(json_object_get(receipt, "run"), "id"));
    const bool whole = id && !strcmp(id, state->result->info.id) && receipt_seal_holds(receipt) &&
                       outputs_stand(state->run->out_dir, json_object_get(receipt, "outputs"));
    json_decref(receipt);
    return whole;
}
