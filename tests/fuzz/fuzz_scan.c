/* JSON read in place against jansson: what one takes the other takes, and both have one canonical
 * form of it. */
#include "fuzz.h"

#include "oracle/json_canonical.h"

#include <stdlib.h>
#include <string.h>

/* jansson reads numbers as it goes; the scan leaves their range to whoever wants the value. */
static bool about_numbers(const json_error_t *fault) {
    const enum json_error_code code = json_error_code(fault);
    return code == json_error_numeric_overflow;
}

/* Deeper than the canonical form goes, or with more members. */
static bool within_limits(const json_t *json, int depth) {
    const char *key;
    json_t *value;
    size_t index;
    bool good = depth <= 64 && json_object_size(json) <= JSON_MOST_PAIRS;
    json_object_foreach((json_t *)json, key, value) good = good && within_limits(value, depth + 1);
    json_array_foreach((json_t *)json, index, value) good = good && within_limits(value, depth + 1);
    return good;
}

static void check_canonical(const json_t *json) {
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    char should[SHA256_HEX_BYTES], is[SHA256_HEX_BYTES];
    struct sha256_stream stream;
    PROMISE(text);
    PROMISE(json_sha256(json, should, NULL) == TB_OK);
    sha256_begin(&stream);
    const bool good = json_canonical((struct json_span){text, strlen(text)}, &stream);
    sha256_end(&stream, is);
    PROMISE(good == within_limits(json, 0));
    PROMISE(!good || !strcmp(should, is));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_error_t fault;
    struct json_scan scan = json_scan_of((const char *)data, size);
    json_t *json = json_loadb((const char *)data, size, JSON_DECODE_ANY, &fault);
    const bool good = json_scan_skip(&scan, NULL) && json_scan_done(&scan);
    PROMISE(scan.at >= (const char *)data && scan.at <= (const char *)data + size);
    /* jansson loses a NUL behind a number; the scan goes less deep. */
    if (json && !good)
        PROMISE(size > 512 || memchr(data, 0, size));
    if (good && !json)
        PROMISE(about_numbers(&fault));
    if (json && good)
        check_canonical(json);
    json_decref(json);
    return 0;
}
