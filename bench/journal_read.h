/* Reading a journal back: whole lines only. */
#ifndef TOPP_BENCH_JOURNAL_READ_H
#define TOPP_BENCH_JOURNAL_READ_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>

struct journal_text {
    json_t *header;      /* first line, owned; NULL when there is no journal or not one line */
    json_t *lines;       /* the others in order, owned; NULL with header */
    int64_t whole_bytes; /* up to and including the last whole line */
    bool finished;       /* the last line says that the run ended */
};

/* A missing file is an empty journal. A last line without its line break is dropped: the process
 * died in it. Any other line that is no JSON object is TB_UNREADABLE with its number. */
enum tb_status journal_read(const char *path, struct journal_text *text, struct tb_error *error);

#endif
