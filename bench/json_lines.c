/* Which line a value stands on: jansson keeps no positions, so the text is walked once more. */
#include "bench/json_source.h"

#include <stdio.h>
#include <string.h>

/* A walk through JSON text that jansson has accepted; it stops at the target's first byte. */
struct walk {
    const char *at, *end;
    const char *target;
    const char *found; /* first byte of the target's key, or of its value in an array */
    char path[JSON_PATH_BYTES];
};

static void skip_spaces(struct walk *w) {
    while (w->at < w->end && strchr(" \t\r\n", *w->at) && *w->at)
        w->at++;
}

static void skip_string(struct walk *w) {
    for (w->at++; w->at < w->end && *w->at != '"'; w->at++)
        if (*w->at == '\\')
            w->at++;
    if (w->at < w->end)
        w->at++;
}

static void skip_value(struct walk *w);

/* Visits the value under the path as it stands; `from` is what the target is reported as. */
static void visit(struct walk *w, const char *from) {
    if (!w->found && !strcmp(w->path, w->target))
        w->found = from;
    skip_spaces(w);
    skip_value(w);
}

static void skip_object(struct walk *w, size_t length) {
    for (;;) {
        skip_spaces(w);
        if (w->at >= w->end)
            return;
        if (*w->at == '}') { /* an empty object: after a comma JSON has no brace */
            w->at++;
            return;
        }
        const char *key = w->at;
        skip_string(w);
        snprintf(w->path + length, sizeof w->path - length, "%s%.*s", length ? "." : "",
                 (int)(w->at - key - 2), key + 1);
        skip_spaces(w);
        w->at++; /* the colon */
        visit(w, key);
        w->path[length] = '\0';
        skip_spaces(w);
        if (w->at >= w->end || *w->at++ != ',')
            return;
    }
}

static void skip_array(struct walk *w, size_t length) {
    for (size_t i = 0;; i++) {
        skip_spaces(w);
        if (w->at >= w->end)
            return;
        if (*w->at == ']') {
            w->at++;
            return;
        }
        snprintf(w->path + length, sizeof w->path - length, "[%zu]", i);
        visit(w, w->at);
        w->path[length] = '\0';
        skip_spaces(w);
        if (w->at >= w->end || *w->at++ != ',')
            return;
    }
}

static void skip_value(struct walk *w) {
    const size_t length = strlen(w->path);
    if (w->found || w->at >= w->end)
        return;
    switch (*w->at) {
    case '"':
        skip_string(w);
        break;
    case '{':
        w->at++;
        skip_object(w, length);
        break;
    case '[':
        w->at++;
        skip_array(w, length);
        break;
    default:
        while (w->at < w->end && *w->at && !strchr(",]} \t\r\n", *w->at))
            w->at++;
    }
}

int64_t json_source_line(const struct json_source *source, const char *path) {
    char target[JSON_PATH_BYTES];
    if (!source->text)
        return 0;
    snprintf(target, sizeof target, "%s", path);
    for (;;) {
        struct walk w = {
            .at = source->text, .end = source->text + source->length, .target = target};
        skip_spaces(&w);
        visit(&w, w.at);
        if (w.found) {
            int64_t line = 1;
            for (const char *at = source->text; at < w.found; at++)
                line += *at == '\n';
            return line;
        }
        if (!target[0])
            return 0;
        size_t cut = strlen(target) - 1; /* the parent's path ends before the last step */
        while (cut > 0 && target[cut] != '.' && target[cut] != '[')
            cut--;
        target[cut] = '\0';
    }
}
