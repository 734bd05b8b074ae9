#include "bench/merge_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAM_BYTES = 1 << 16, DISK_BYTES = 1 << 24 };

enum tb_status merge_input_open(struct merge_input *input, const char *dir, const char *name,
                                struct tb_error *error) {
    *input = (struct merge_input){.file = -1};
    if ((size_t)snprintf(input->path, sizeof input->path, "%s/%s", dir, name) >= sizeof input->path)
        return tb_fail_at(error, TB_UNREADABLE, dir, 0, -1, "the path is too long");
    input->file = open(input->path, O_RDONLY | O_CLOEXEC);
    if (input->file < 0)
        return tb_fail_at(error, TB_UNREADABLE, input->path, 0, -1, "%s", strerror(errno));
    sha256_begin(&input->hash);
    return TB_OK;
}

/* More bytes behind those that are there: the line that began at `at` moves to the front. */
static enum tb_status refill(struct merge_input *input, struct tb_error *error) {
    if (input->at > 0)
        memmove(input->buffer, input->buffer + input->at, input->used - input->at);
    input->used -= input->at;
    input->at = 0;
    if (input->room < input->used + STREAM_BYTES + 1) {
        const size_t room = 2 * input->used + STREAM_BYTES + 1;
        char *grown = realloc(input->buffer, room);
        if (!grown)
            return tb_fail(error, TB_NO_MEMORY, "no memory for a line of %s", input->path);
        input->buffer = grown;
        input->room = room;
    }
    ssize_t got;
    do
        got = read(input->file, input->buffer + input->used, STREAM_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tb_fail_at(error, TB_UNREADABLE, input->path, input->number, -1,
                          "cannot be read: %s", strerror(errno));
    sha256_put(&input->hash, input->buffer + input->used, (size_t)got);
    input->used += (size_t)got;
    input->ended = got == 0;
    return TB_OK;
}

enum tb_status merge_input_next(struct merge_input *input, struct tb_error *error) {
    enum tb_status status = TB_OK;
    if (input->length > 0) {
        input->at += input->length;
        input->buffer[input->at] = input->behind;
    }
    const char *feed = NULL;
    for (size_t seen = 0; status == TB_OK; status = refill(input, error)) {
        const size_t there = input->used - input->at;
        if (there > seen)
            feed = memchr(input->buffer + input->at + seen, '\n', there - seen);
        seen = there;
        if (feed || input->ended)
            break;
    }
    if (status != TB_OK)
        return status;
    input->line = input->buffer + input->at;
    input->length = feed ? (size_t)(feed - input->line) + 1 : input->used - input->at;
    input->behind = input->line[input->length];
    input->line[input->length] = '\0';
    input->number++;
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
    if (input->path[0] && input->file >= 0) {
        close(input->file);
        sha256_end(&input->hash, unused);
    }
    free(input->buffer);
    input->file = -1;
    input->buffer = input->line = NULL;
    input->length = input->room = input->used = input->at = 0;
}

bool merge_output_begin(struct merge_output *output) {
    setvbuf(output->file, NULL, _IONBF, 0);
    sha256_begin(&output->hash);
    output->buffer = malloc(STREAM_BYTES);
    return output->buffer != NULL;
}

static void drain(struct merge_output *output) {
    sha256_put(&output->hash, output->buffer, output->used);
    if (fwrite(output->buffer, 1, output->used, output->file) < output->used && !output->cause)
        output->cause = errno ? errno : EIO;
    output->written += (int64_t)output->used;
    output->used = 0;
    /* So that the disk works beside us, not all at the end; a hint, which may be refused. */
    if (output->written - output->on_its_way >= DISK_BYTES) {
        sync_file_range(fileno(output->file), output->on_its_way,
                        output->written - output->on_its_way, SYNC_FILE_RANGE_WRITE);
        output->on_its_way = output->written;
    }
}

void merge_put(struct merge_output *output, const char *bytes, size_t length) {
    while (length > 0) {
        const size_t room = STREAM_BYTES - output->used, now = length < room ? length : room;
        memcpy(output->buffer + output->used, bytes, now);
        output->used += now;
        bytes += now;
        length -= now;
        if (output->used == STREAM_BYTES)
            drain(output);
    }
}

void merge_put_text(struct merge_output *output, const char *text) {
    merge_put(output, text, strlen(text));
}

void merge_output_end(struct merge_output *output, char hex[SHA256_HEX_BYTES]) {
    hex[0] = '\0';
    if (!output->buffer)
        return;
    drain(output);
    sha256_end(&output->hash, hex);
    free(output->buffer);
    output->buffer = NULL;
}
