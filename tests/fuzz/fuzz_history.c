/* An exported history: what is taken comes out again as it went in. */
#include "fuzz.h"

#include "ci/history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The history as text; NULL when the import was refused, with its error. */
static char *through(const char *path, struct tb_error *error) {
    struct history history;
    struct import_counts counts;
    char *text = NULL;
    size_t bytes = 0;
    PROMISE(history_open(":memory:", true, &history, error) == TB_OK);
    const enum tb_status status = history_import(&history, path, false, &counts, error);
    fuzz_check_error(status, error);
    if (status == TB_OK) {
        FILE *stream = open_memstream(&text, &bytes);
        PROMISE(stream && history_export(&history, stream, error) == TB_OK);
        fclose(stream);
    }
    history_close(&history);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[FUZZ_PATH_BYTES];
    const int descriptor = fuzz_file(data, size, path);
    struct tb_error error = TB_ERROR_INIT, other = TB_ERROR_INIT;
    history_is_export(path);
    const enum tb_status status = history_import_check(path, &error);
    fuzz_check_error(status, &error);
    char *first = through(path, &other);
    PROMISE(status == TB_OK || !first);
    if (first) {
        char again_path[FUZZ_PATH_BYTES];
        struct tb_error third = TB_ERROR_INIT;
        const int again = fuzz_file((const uint8_t *)first, strlen(first), again_path);
        char *second = through(again_path, &third);
        PROMISE(second && !strcmp(first, second));
        free(second);
        close(again);
    }
    free(first);
    close(descriptor);
    return 0;
}
