#include "bench/merge_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BYTES = 1 << 16 };

enum tb_status merge_input_open(struct merge_input *input, const char *dir, const char *name,
                                struct tb_error *error) {
    if ((size_t)snprintf(input->path, sizeof input->path, "%s/%s", dir, name) >= sizeof input->path)
        return tb_fail_at(error, TB_UNREADABLE, dir, 0, -1, "the path is too long");
    input->file = fopen(input->path, "re");
    if (!input->file)
        return tb_fail_at(error, TB_UNREADABLE, input->path, 0, -1, "%s", strerror(errno));
    setvbuf(input->file, NULL, _IOFBF, STREAM_BYTES);
    sha256_begin(&input->hash);
    return TB_OK;
}

enum tb_status merge_input_next(struct merge_input *input, struct tb_error *error) {
    errno = 0;
    const ssize_t length = getline(&input->line, &input->room, input->file);
    input->length = length > 0 ? (size_t)length : 0;
    input->number++;
    if (length < 0 && (ferror(input->file) || errno == ENOMEM))
        return tb_fail_at(error, TB_UNREADABLE, input->path, input->number, -1,
                          "cannot be read: %s", strerror(errno));
    sha256_put(&input->hash, input->line, input->length);
    return TB_OK;
}

enum tb_status merge_input_wrong(const struct merge_input *input, const char *what,
                                 struct tb_error *error) {
    return tb_fail_at(error, TB_UNREADABLE, input->path, input->number, -1, "%s", what);
}

enum tb_status merge_input_finish(struct merge_input *input, const char *bound,
                                  struct tb_error *error) {
    char hex[SHA256_HEX_BYTES];
    enum tb_status status = TB_OK;
    while (status == TB_OK && input->length > 0)
        status = merge_input_next(input, error);
    sha256_end(&input->hash, hex);
    if (status == TB_OK && strcmp(hex, bound) != 0)
        status = tb_fail_at(error, TB_UNREADABLE, input->path, 0, -1,
                            "is not what the receipt beside it binds (SHA-256 %.12s..., bound is "
                            "%.12s...): it was changed after the run, run this shard again",
                            hex, bound);
    merge_input_close(input);
    return status;
}

void merge_input_close(struct merge_input *input) {
    char unused[SHA256_HEX_BYTES];
    if (input->file) {
        fclose(input->file);
        sha256_end(&input->hash, unused);
    }
    free(input->line);
    input->file = NULL;
    input->line = NULL;
    input->room = 0;
}

void merge_output_begin(struct merge_output *output) {
    setvbuf(output->file, NULL, _IOFBF, STREAM_BYTES);
    sha256_begin(&output->hash);
    output->begun = true;
}

void merge_output_end(struct merge_output *output, char hex[SHA256_HEX_BYTES]) {
    hex[0] = '\0';
    if (output->begun)
        sha256_end(&output->hash, hex);
    output->begun = false;
}

void merge_put(struct merge_output *output, const char *bytes, size_t length) {
    fwrite(bytes, 1, length, output->file);
    sha256_put(&output->hash, bytes, length);
}

void merge_put_text(struct merge_output *output, const char *text) {
    merge_put(output, text, strlen(text));
}
