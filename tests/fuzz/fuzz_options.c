/* Command lines: one word a line of the input. */
#include "fuzz.h"

#include "bench/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 40 };

static void check(const struct options *options) {
    PROMISE(options->mode > MODE_NONE && options->mode <= MODE_VERSION);
    PROMISE(options->p_count >= 0 && options->p_count <= OPTION_MOST_P);
    PROMISE(options->passed_count >= 0 && options->passed_count <= OPTION_MOST_PASSED);
    for (int32_t i = 0; i < options->p_count; i++)
        PROMISE(options->p[i] > 0.0f && isfinite(options->p[i]));
    if (options->mode == MODE_HELP || options->mode == MODE_USAGE || options->mode == MODE_VERSION)
        return;
    PROMISE(!(options->resume && options->force));
    PROMISE(!(options->case_name && options->filter));
    PROMISE(options->slices >= 0 && options->slices <= 32);
    PROMISE(options->threads >= 0 && options->threads <= 1024);
    if (options->mode == MODE_ORACLE || options->mode == MODE_APPLY) {
        PROMISE(options->subject && *options->subject);
        PROMISE(options->p_count >= 1);
    }
    if (options->mode == MODE_APPLY)
        PROMISE(options->input && options->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char program[] = "bench_topp";
    char *words[MOST_WORDS + 2] = {program}, *before[MOST_WORDS + 2];
    char *text = malloc(size + 1);
    PROMISE(text);
    memcpy(text, data, size);
    text[size] = '\0';
    int count = 1;
    for (char *at = text, *end = text + size; at < end && count <= MOST_WORDS; count++) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        words[count] = at;
        at = stop ? stop + 1 : end;
        if (stop)
            *stop = '\0';
    }
    memcpy(before, words, sizeof words);
    struct options options;
    struct tb_error error = TB_ERROR_INIT;
    const enum tb_status status = options_parse(count, words, &options, &error);
    PROMISE(status == TB_OK || status == TB_USAGE);
    PROMISE(!memcmp(before, words, sizeof words));
    if (status == TB_OK) {
        PROMISE(error.code == TB_OK);
        check(&options);
    } else if (error.code != TB_OK) { /* else argp has said it on standard error */
        fuzz_check_error(status, &error);
    }
    free(text);
    return 0;
}
