/* --verify: recomputes what a receipt binds, as far as this machine can. */
#include "bench/tools.h"
#include "bench/verify.h"

#include <string.h>

static void folder_of(const char *path, char *dir, size_t bytes) {
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(dir, bytes, "%.*s", (int)(slash == path ? 1 : slash - path), path);
    else
        snprintf(dir, bytes, ".");
}

int tool_verify(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    json_t *receipt = NULL;
    if (receipt_read(options->subject, &receipt, &error) != TB_OK)
        return tool_fail(&error);
    struct verification verification = {.options = options, .receipt = receipt};
    folder_of(options->subject, verification.dir, sizeof verification.dir);
    verify_seal(&verification);
    verify_outputs(&verification);
    verify_run(&verification);
    verify_shards(&verification);
    verify_sources(&verification);
    verify_here(&verification);
    verify_plan(&verification);
    verify_cells(&verification);
    verify_figures(&verification);
    verify_inputs(&verification);
    receipt_items_print(&verification.items, stdout);
    const int exit_code = receipt_exit_code(&verification.items, options->strict);
    verify_free(&verification);
    json_decref(receipt);
    return tool_finish_output(exit_code);
}
