/* Journals, as left by killed runs and by whoever edited them. */
#include "fuzz.h"

#include "bench/journal_read.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct journal_text text;
    struct tb_error error = TB_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    const int descriptor = fuzz_file(data, size, path);
    const enum tb_status status = journal_read(path, &text, &error);
    fuzz_check_error(status, &error);
    PROMISE(!text.header == !text.lines);
    if (text.header) {
        /* What is kept ends with a line break, and no whole line was left behind it. */
        PROMISE(status == TB_OK && json_is_object(text.header));
        PROMISE(text.whole_bytes > 0 && (size_t)text.whole_bytes <= size);
        PROMISE(data[text.whole_bytes - 1] == '\n');
        PROMISE(!memchr(data + text.whole_bytes, '\n', size - (size_t)text.whole_bytes));
    } else {
        PROMISE(status != TB_OK || !memchr(data, '\n', size));
    }
    json_decref(text.header);
    json_decref(text.lines);
    close(descriptor);
    return 0;
}
