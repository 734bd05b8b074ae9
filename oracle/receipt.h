/* What a receipt is made of: hashes, a seal, and the list of verdicts on what it binds.
 *
 * A receipt is one JSON object (docs/receipt.md). Its member "seal_sha256" is the hash of the
 * rest in canonical form, so that a change of any field is found; it is no signature: whoever can
 * write the file can seal it anew. */
#ifndef TOPP_ORACLE_RECEIPT_H
#define TOPP_ORACLE_RECEIPT_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { SHA256_HEX_BYTES = 65, RECEIPT_SCHEMA = 1 };
extern const char receipt_kind[];

/* Lower-case hex of the SHA-256 of bytes in memory. */
void sha256_memory(const void *bytes, size_t length, char hex[SHA256_HEX_BYTES]);
/* The same of a file's bytes. TB_UNREADABLE names the file. */
enum tb_status sha256_file(const char *path, char hex[SHA256_HEX_BYTES], struct tb_error *error);

/* Hash of a JSON value in canonical form: compact, keys sorted, reals with 17 digits. */
enum tb_status json_sha256(const json_t *json, char hex[SHA256_HEX_BYTES], struct tb_error *error);

/* Puts "kind", "schema" and "seal_sha256" into the receipt and writes it, through a temporary file
 * and rename, so that a receipt is either whole or not there. */
enum tb_status receipt_write(json_t *receipt, const char *path, struct tb_error *error);

/* Reads a receipt of this schema: TB_UNREADABLE when it is no JSON, no receipt, of another schema
 * or without seal. The seal is not compared here. *receipt: json_decref(). */
enum tb_status receipt_read(const char *path, json_t **receipt, struct tb_error *error);

/* Does the seal stand for the content? */
bool receipt_seal_holds(const json_t *receipt);

/* What became of one bound item. */
enum receipt_state { RECEIPT_VERIFIED, RECEIPT_CHANGED, RECEIPT_ELSEWHERE, RECEIPT_STATES };

const char *receipt_state_name(enum receipt_state state); /* "not recomputable here" ... */

struct receipt_item {
    char *group;  /* "sources", "inputs", ...; owned */
    char *name;   /* what it is about; owned */
    char *detail; /* why it is not verified, "" if it is; owned */
    enum receipt_state state;
};

/* A growing list. Owned; free with receipt_items_free. Start from a zeroed struct. */
struct receipt_items {
    struct receipt_item *items;
    size_t count, room;
    size_t by_state[RECEIPT_STATES];
    bool short_of_memory; /* an item was lost: the verification must not pass */
};

void receipt_add(struct receipt_items *items, enum receipt_state state, const char *group,
                 const char *name, const char *detail_format, ...)
    __attribute__((format(printf, 5, 6)));
void receipt_items_free(struct receipt_items *items);

/* One line per group with its counts, then every item that is not verified, then the sum. */
void receipt_items_print(const struct receipt_items *items, FILE *stream);

/* 0: all that could be recomputed holds; 1: something changed; 3: strict, and something could not
 * be recomputed here. */
int receipt_exit_code(const struct receipt_items *items, bool strict);

#endif
