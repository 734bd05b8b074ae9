/* Files of a merge, read and written from front to end, each hashed on its way. */
#ifndef TOPP_BENCH_MERGE_STREAM_H
#define TOPP_BENCH_MERGE_STREAM_H

#include "oracle/json_canonical.h"

#include <stdio.h>

/* One shard's file, line by line. */
struct merge_input {
    FILE *file;
    char path[4200];
    struct sha256_stream hash;
    char *line;    /* with its line feed, terminated */
    size_t length; /* of the line; 0 at the end of the file */
    size_t room;
    int64_t number; /* of the line, from 1 */
};
/* Start zeroed. */
enum tb_status merge_input_open(struct merge_input *input, const char *dir, const char *name,
                                struct tb_error *error);
/* The next line; at the end of the file its length is 0. */
enum tb_status merge_input_next(struct merge_input *input, struct tb_error *error);
/* Reads what is left; TB_UNREADABLE unless the whole file has the hash that its receipt binds. */
enum tb_status merge_input_finish(struct merge_input *input, const char *bound,
                                  struct tb_error *error);
void merge_input_close(struct merge_input *input);
/* TB_UNREADABLE at the line that was read last. */
enum tb_status merge_input_wrong(const struct merge_input *input, const char *what,
                                 struct tb_error *error);

/* A merged file. A write that fails shows when the stream is flushed (journal_publish()). */
struct merge_output {
    FILE *file;
    struct sha256_stream hash;
    bool begun;
};
void merge_output_begin(struct merge_output *output); /* file is open */
/* "" when it was never begun. The file stays open. */
void merge_output_end(struct merge_output *output, char hex[SHA256_HEX_BYTES]);
void merge_put(struct merge_output *output, const char *bytes, size_t length);
void merge_put_text(struct merge_output *output, const char *text);

#endif
