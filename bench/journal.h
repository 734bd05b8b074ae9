/* The output folder of a run: its lock, its journal, and files that appear whole or not at all.
 *
 * journal.jsonl: a header line that binds the run, then one JSON object a line, each written in
 * one piece before the next step starts, so that a killed process loses nothing finished. */
#ifndef TOPP_BENCH_JOURNAL_H
#define TOPP_BENCH_JOURNAL_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct journal;

struct journal_options {
    const char *folder;   /* made if missing, parents too */
    const json_t *header; /* what this run is; members named in `binding` must agree on resume */
    const char *const *binding; /* NULL-terminated names of members */
    bool resume;
    bool force;         /* replace an interrupted run, or results of another plan */
    int64_t most_bytes; /* of everything written, 0 = no limit */
};

/* Locks the folder (one run at a time), checks it and what it holds, and opens the journal.
 * TB_USAGE: another run is in there, or it holds something that must not be replaced.
 * TB_UNREADABLE: resume, but the journal is damaged or of another run. TB_IO: cannot be written. */
enum tb_status journal_open(const struct journal_options *options, struct journal **journal,
                            struct tb_error *error);
void journal_close(struct journal *journal); /* NULL is fine */

/* True when the journal goes on from an earlier run. */
bool journal_resumed(const struct journal *journal);
/* The header as it stands in the file (of the first run when resumed). Borrowed. */
const json_t *journal_header(const struct journal *journal);
/* Lines of the earlier run after the header: an array of objects. Borrowed. */
const json_t *journal_lines(const struct journal *journal);

/* Appends one object (owned, also on failure). After a failed write the journal ends with the last
 * whole line. */
enum tb_status journal_append(struct journal *journal, json_t *line, struct tb_error *error);

/* A file of the folder that replaces its predecessor only when whole: begin gives a stream on a
 * temporary file (or its path alone when stream is NULL), publish renames it, and discard drops
 * it. path: room for JOURNAL_PATH_BYTES. */
enum { JOURNAL_PATH_BYTES = 4096 };
enum tb_status journal_begin_file(struct journal *journal, const char *name, char *path,
                                  FILE **stream, struct tb_error *error);
enum tb_status journal_publish(struct journal *journal, const char *name, FILE *stream,
                               struct tb_error *error);
void journal_discard(struct journal *journal, const char *name, FILE *stream);

#endif
