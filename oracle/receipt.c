#include "oracle/receipt.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };
const char receipt_kind[] = "topp-bench receipt";

static void to_hex(const unsigned char *digest, char hex[SHA256_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
}

void sha256_memory(const void *bytes, size_t length, char hex[SHA256_HEX_BYTES]) {
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    unsigned int size = 0;
    hex[0] = '\0'; /* no hash compares equal to it */
    if (EVP_Digest(bytes, length, digest, &size, EVP_sha256(), NULL) == 1)
        to_hex(digest, hex);
}

enum tb_status sha256_file(const char *path, char hex[SHA256_HEX_BYTES], struct tb_error *error) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    enum tb_status status = TB_OK;
    char *buffer = malloc(READ_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    FILE *file = fopen(path, "rb");
    hex[0] = '\0';
    if (!file) {
        status = tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "%s", strerror(errno));
        goto cleanup;
    }
    if (!buffer || !context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        status = tb_fail(error, TB_NO_MEMORY, "no memory to hash %s", path);
        goto cleanup;
    }
    for (size_t got; (got = fread(buffer, 1, READ_BYTES, file)) > 0;)
        EVP_DigestUpdate(context, buffer, got);
    if (ferror(file))
        status =
            tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be read: %s", strerror(errno));
    else if (EVP_DigestFinal_ex(context, digest, &size) == 1)
        to_hex(digest, hex);
cleanup:
    if (file)
        fclose(file);
    EVP_MD_CTX_free(context);
    free(buffer);
    return status;
}

enum tb_status json_sha256(const json_t *json, char hex[SHA256_HEX_BYTES], struct tb_error *error) {
    char *text =
        json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    hex[0] = '\0';
    if (!text)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the canonical text of a receipt");
    sha256_memory(text, strlen(text), hex);
    free(text);
    return TB_OK;
}

/* The hash of everything but the seal itself. */
static enum tb_status seal_of(const json_t *receipt, char hex[SHA256_HEX_BYTES],
                              struct tb_error *error) {
    json_t *bare = json_copy((json_t *)receipt);
    if (!bare)
        return tb_fail(error, TB_NO_MEMORY, "no memory for a receipt's seal");
    json_object_del(bare, "seal_sha256");
    const enum tb_status status = json_sha256(bare, hex, error);
    json_decref(bare);
    return status;
}

bool receipt_seal_holds(const json_t *receipt) {
    char hex[SHA256_HEX_BYTES];
    const char *seal = json_string_value(json_object_get(receipt, "seal_sha256"));
    return seal && seal_of(receipt, hex, NULL) == TB_OK && hex[0] && strcmp(hex, seal) == 0;
}

enum tb_status receipt_write(json_t *receipt, const char *path, struct tb_error *error) {
    char temporary[4200], hex[SHA256_HEX_BYTES];
    if (json_object_set_new(receipt, "kind", json_string(receipt_kind)) ||
        json_object_set_new(receipt, "schema", json_integer(RECEIPT_SCHEMA)))
        return tb_fail(error, TB_NO_MEMORY, "no memory for the receipt");
    enum tb_status status = seal_of(receipt, hex, error);
    if (status != TB_OK)
        return status;
    if (json_object_set_new(receipt, "seal_sha256", json_string(hex)))
        return tb_fail(error, TB_NO_MEMORY, "no memory for the receipt");
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.part", path) >= sizeof temporary)
        return tb_fail_at(error, TB_IO, path, 0, -1, "the path is too long");
    FILE *file = fopen(temporary, "w");
    if (!file)
        return tb_fail_at(error, TB_IO, temporary, 0, -1, "cannot be written: %s", strerror(errno));
    bool failed = json_dumpf(receipt, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) != 0 ||
                  fputc('\n', file) == EOF || fflush(file) != 0 || fsync(fileno(file)) != 0;
    failed = fclose(file) != 0 || failed;
    if (failed || rename(temporary, path) != 0) {
        status = tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
        unlink(temporary);
    }
    return status;
}

static enum tb_status not_a_receipt(const char *path, const char *why, struct tb_error *error) {
    return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "is no receipt that can be read: %s", why);
}

enum tb_status receipt_read(const char *path, json_t **receipt, struct tb_error *error) {
    json_error_t fault;
    *receipt = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "%s", strerror(errno));
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &fault);
    fclose(file);
    if (!json)
        return tb_fail_at(error, TB_UNREADABLE, path, fault.line > 0 ? fault.line : 0,
                          fault.position, "is no JSON: %s", fault.text);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *why = NULL;
    if (!kind || strcmp(kind, receipt_kind) != 0)
        why = "\"kind\" is not \"topp-bench receipt\"";
    else if (!json_is_integer(json_object_get(json, "schema")))
        why = "\"schema\" is missing";
    else if (json_integer_value(json_object_get(json, "schema")) != RECEIPT_SCHEMA)
        why = "\"schema\" is one that this program does not know: use the release that wrote it";
    else if (!json_is_string(json_object_get(json, "seal_sha256")))
        why = "\"seal_sha256\" is missing";
    if (why) {
        json_decref(json);
        return not_a_receipt(path, why, error);
    }
    *receipt = json;
    return TB_OK;
}
