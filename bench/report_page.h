/* Pieces of a self-contained HTML page, used by --report and by any other page of the house. */
#ifndef TOPP_BENCH_REPORT_PAGE_H
#define TOPP_BENCH_REPORT_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Everything up to <main>: style for light, dark and print, no reference to any network. */
void page_open(FILE *stream, const char *title, const char *subtitle);
/* The script that sorts and filters every table.cells, and the end of the page. */
void page_close(FILE *stream);

/* Text with &, <, >, " and ' escaped; control characters become spaces. */
void page_text(FILE *stream, const char *text);

/* A drawn SVG file, inline; ids get `prefix` before them so that charts do not share definitions.
 * False when it cannot be read. */
bool page_svg(FILE *stream, const char *path, const char *prefix);

/* The command that runs a cell alone again, with what its run was given; quoted for a shell. run:
 * of results.json. */
void page_command(FILE *stream, const json_t *run, const char *cell);

/* An object as a two-column table, nested members as outer.inner. */
void page_object(FILE *stream, const json_t *object);

#endif
