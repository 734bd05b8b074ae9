/* The canonical form of JSON text that hashes are taken of (json_sha256() in oracle/receipt.h),
 * made from the text itself. Numbers and strings stand as they are written: the text must be one
 * that this project wrote, compact or not. */
#ifndef TOPP_ORACLE_JSON_CANONICAL_H
#define TOPP_ORACLE_JSON_CANONICAL_H

#include "oracle/json_scan.h"
#include "oracle/receipt.h"

/* SHA-256 of what comes piece by piece. */
enum { SHA256_PENDING_BYTES = 1024 };
struct sha256_stream {
    void *context; /* of OpenSSL, owned until sha256_end() */
    size_t pending_bytes;
    char pending[SHA256_PENDING_BYTES]; /* small pieces together */
    bool failed;
};
void sha256_begin(struct sha256_stream *stream);
void sha256_put(struct sha256_stream *stream, const void *bytes, size_t length);
/* "" when memory ran short: no hash compares equal to it. Frees what the stream holds. */
void sha256_end(struct sha256_stream *stream, char hex[SHA256_HEX_BYTES]);

struct json_pair {
    struct json_span key, value; /* key without its quotes */
};
/* Members of an object as written; false when the text is no object, or has more than `room`. */
bool json_pairs(struct json_span object, struct json_pair *pairs, size_t room, size_t *count);

/* Puts the canonical form of an object's members, but for `without` (NULL: all), into the stream;
 * sorts them. As json_canonical(). */
bool json_canonical_pairs(struct json_pair *pairs, size_t count, const char *without,
                          struct sha256_stream *stream);

/* Puts the canonical form of a value into the stream. false when the text is no JSON, is nested
 * deeper than 64, or has more than JSON_MOST_PAIRS members in an object. */
enum { JSON_MOST_PAIRS = 128 };
bool json_canonical(struct json_span text, struct sha256_stream *stream);

#endif
