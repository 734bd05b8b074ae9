#include "oracle/json_canonical.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static void to_hex(const unsigned char *digest, char hex[SHA256_HEX_BYTES]) {
    static const char letters[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = letters[digest[i] >> 4];
        hex[2 * i + 1] = letters[digest[i] & 15];
    }
    hex[64] = '\0';
}

void sha256_begin(struct sha256_stream *stream) {
    stream->pending_bytes = 0;
    stream->context = EVP_MD_CTX_new();
    stream->failed =
        !stream->context || EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) != 1;
}

static void settle(struct sha256_stream *stream) {
    if (!stream->failed && stream->pending_bytes)
        stream->failed =
            EVP_DigestUpdate(stream->context, stream->pending, stream->pending_bytes) != 1;
    stream->pending_bytes = 0;
}

void sha256_put(struct sha256_stream *stream, const void *bytes, size_t length) {
    if (stream->pending_bytes + length > sizeof stream->pending)
        settle(stream);
    if (length > sizeof stream->pending) {
        if (!stream->failed)
            stream->failed = EVP_DigestUpdate(stream->context, bytes, length) != 1;
        return;
    }
    memcpy(stream->pending + stream->pending_bytes, bytes, length);
    stream->pending_bytes += length;
}

void sha256_end(struct sha256_stream *stream, char hex[SHA256_HEX_BYTES]) {
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    hex[0] = '\0';
    settle(stream);
    if (!stream->failed && EVP_DigestFinal_ex(stream->context, digest, NULL) == 1)
        to_hex(digest, hex);
    EVP_MD_CTX_free(stream->context);
    stream->context = NULL;
    stream->failed = true;
}

static bool canonical_value(struct json_scan *scan, int depth, struct sha256_stream *stream);

/* The next byte of a key as written, decoded and stepped over; -1 at its end. Control characters
 * are all that is written by number in text of ours. */
static int next_byte(struct json_span *key) {
    static const char written[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *at = key->at;
    size_t taken = 1;
    int byte = -1;
    if (!key->length)
        return byte;
    byte = (unsigned char)*at;
    if (byte == '\\' && key->length >= 6 && at[1] == 'u') {
        const char digits[] = {at[4], at[5], '\0'};
        byte = (int)strtol(digits, NULL, 16);
        taken = 6;
    } else if (byte == '\\' && key->length >= 2) {
        const char *name = memchr(written, at[1], sizeof written - 1);
        byte = (unsigned char)(name ? meant[name - written] : at[1]);
        taken = 2;
    }
    *key = (struct json_span){at + taken, key->length - taken};
    return byte;
}

/* By what the keys mean, not by how they are spelt. */
static int by_key(const void *left, const void *right) {
    struct json_span a = ((const struct json_pair *)left)->key;
    struct json_span b = ((const struct json_pair *)right)->key;
    int from_a, from_b;
    do {
        from_a = next_byte(&a);
        from_b = next_byte(&b);
    } while (from_a == from_b && from_a >= 0);
    return from_a - from_b;
}

static bool scan_pairs(struct json_scan *scan, struct json_pair *pairs, size_t room,
                       size_t *count) {
    struct json_span key;
    *count = 0;
    for (json_scan_object(scan); json_scan_key(scan, &key);) {
        struct json_span value;
        if (!json_scan_skip(scan, &value) || *count == room)
            return false;
        pairs[(*count)++] = (struct json_pair){key, value};
    }
    return !scan->bad;
}

bool json_pairs(struct json_span object, struct json_pair *pairs, size_t room, size_t *count) {
    struct json_scan scan = json_scan_of(object.at, object.length);
    return scan_pairs(&scan, pairs, room, count) && json_scan_done(&scan);
}

static bool put_pairs(struct json_pair *pairs, size_t count, const char *without, int depth,
                      struct sha256_stream *stream) {
    bool first = true;
    qsort(pairs, count, sizeof *pairs, by_key);
    sha256_put(stream, "{", 1);
    for (size_t i = 0; i < count; i++) {
        if (without && json_span_is(pairs[i].key, without))
            continue;
        sha256_put(stream, ",", !first);
        first = false;
        sha256_put(stream, "\"", 1);
        sha256_put(stream, pairs[i].key.at, pairs[i].key.length);
        sha256_put(stream, "\":", 2);
        const struct json_span value = pairs[i].value;
        struct json_scan scan = json_scan_of(value.at, value.length);
        if (*value.at != '{' && *value.at != '[')
            sha256_put(stream, value.at, value.length);
        else if (!canonical_value(&scan, depth + 1, stream))
            return false;
    }
    sha256_put(stream, "}", 1);
    return true;
}

static bool put_object(struct json_scan *scan, int depth, struct sha256_stream *stream) {
    struct json_pair pairs[JSON_MOST_PAIRS];
    size_t count;
    return scan_pairs(scan, pairs, JSON_MOST_PAIRS, &count) &&
           put_pairs(pairs, count, NULL, depth, stream);
}

static bool put_array(struct json_scan *scan, int depth, struct sha256_stream *stream) {
    bool first = true;
    sha256_put(stream, "[", 1);
    for (json_scan_array(scan); json_scan_item(scan); first = false) {
        sha256_put(stream, ",", !first);
        if (!canonical_value(scan, depth + 1, stream))
            return false;
    }
    sha256_put(stream, "]", 1);
    return !scan->bad;
}

static bool canonical_value(struct json_scan *scan, int depth, struct sha256_stream *stream) {
    struct json_span text;
    const enum json_type type = json_scan_peek(scan);
    if (depth > MOST_DEPTH)
        return false;
    if (type == JSON_SCAN_OBJECT)
        return put_object(scan, depth, stream);
    if (type == JSON_SCAN_ARRAY)
        return put_array(scan, depth, stream);
    if (!json_scan_skip(scan, &text))
        return false;
    sha256_put(stream, text.at, text.length);
    return true;
}

bool json_canonical_pairs(struct json_pair *pairs, size_t count, const char *without,
                          struct sha256_stream *stream) {
    return put_pairs(pairs, count, without, 0, stream);
}

bool json_canonical(struct json_span text, struct sha256_stream *stream) {
    struct json_scan scan = json_scan_of(text.at, text.length);
    return canonical_value(&scan, 0, stream) && json_scan_done(&scan);
}
