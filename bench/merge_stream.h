/* Files of a merge, read and written from front to end, each hashed on its way. */
#ifndef TOPP_BENCH_MERGE_STREAM_H
#define TOPP_BENCH_MERGE_STREAM_H

#include "oracle/json_canonical.h"

#include <stdio.h>

/* One shard's file, line by line. */
struct merge_input {
    int file; /* -1 when it is closed */
    char path[4200];
    struct sha256_stream hash;
    char *line;     /* with its line feed, terminated; valid until the next one is read */
    size_t length;  /* of the line; 0 at the end of the file */
    int64_t number; /* of the line, from 1 */
    char *buffer;   /* owned; the line lies in it */
    size_t room, used, at;
    char behind; /* the byte behind the line, whose place its terminator takes */
    bool ended;
};
enum tb_status merge_input_open(struct merge_input *input, const char *dir, const char *name,
                                struct tb_error *error);
/* The next line; at the end of the file its length is 0. */
enum tb_status merge_input_next(struct merge_input *input, struct tb_error *error);
/* Reads what is left; TB_UNREADABLE unless the whole file has the hash that its receipt binds. */
enum tb_status merge_input_finish(struct merge_input *input, const char *bound,
                                  struct tb_error *error);
/* A zeroed struct, or one that is closed, is fine. */
void merge_input_close(struct merge_input *input);
/* TB_UNREADABLE at the line that was read last. */
enum tb_status merge_input_wrong(const struct merge_input *input, const char *what,
                                 struct tb_error *error);

/* A merged file. */
struct merge_output {
    FILE *file;
    struct sha256_stream hash;
    char *buffer; /* owned; NULL: not begun */
    size_t used;
    int64_t written, on_its_way; /* bytes handed to the system; told to go to the disk */
    int cause;                   /* errno of the first write that failed, else 0 */
};
/* file is open. false without memory. */
bool merge_output_begin(struct merge_output *output);
void merge_put(struct merge_output *output, const char *bytes, size_t length);
void merge_put_text(struct merge_output *output, const char *text);
/* Writes what is left; hash "" when the output was never begun. The file stays open. */
void merge_output_end(struct merge_output *output, char hex[SHA256_HEX_BYTES]);

#endif
