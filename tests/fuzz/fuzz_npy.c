/* .npy: the reader of memory and the one of files agree on every input, bit for bit. */
#include "fuzz.h"

#include "bench/inputs.h"

#include <string.h>
#include <unistd.h>

static void check(enum tb_status status, const struct logits *logits, const struct tb_error *error,
                  size_t size) {
    fuzz_check_error(status, error);
    if (status != TB_OK) {
        PROMISE(!logits->data);
        PROMISE(status == TB_UNREADABLE || status == TB_NO_MEMORY);
        PROMISE(error->byte <= (int64_t)size);
        return;
    }
    PROMISE(logits->batch >= 1 && logits->vocab >= 1 && logits->stride == logits->vocab);
    PROMISE((size_t)logits->batch * (size_t)logits->vocab <= size / 2);
    PROMISE(strlen(logits->sha256) == 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct logits memory, file;
    struct tb_error memory_error = TB_ERROR_INIT, file_error = TB_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    const bool bfloat16 = size % 2; /* both ways of taking `<u2` */
    const int descriptor = fuzz_file(data, size, path);
    const enum tb_status from_memory =
        npy_read_memory(data, size, path, bfloat16, &memory, &memory_error);
    const enum tb_status from_file = npy_read(path, bfloat16, &file, &file_error);
    check(from_memory, &memory, &memory_error, size);
    check(from_file, &file, &file_error, size);
    PROMISE(from_memory == from_file);
    PROMISE(!strcmp(memory.sha256, file.sha256));
    PROMISE(!strcmp(memory_error.message, file_error.message));
    PROMISE(memory_error.byte == file_error.byte);
    logits_free(&memory);
    logits_free(&file);
    close(descriptor);
    return 0;
}
