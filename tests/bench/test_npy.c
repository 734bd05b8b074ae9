/* The .npy reader: what it takes, widened exactly, and every defect named with file and byte. */
#include "bench/inputs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Builds a file of format `major`.0 around a dictionary; returns its length. */
static size_t build(unsigned char *bytes, int major, const char *dictionary, size_t data_bytes) {
    const size_t length = strlen(dictionary), prefix = major == 2 ? 12 : 10;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)major;
    bytes[7] = 0;
    bytes[8] = length & 255;
    bytes[9] = (unsigned char)(length >> 8);
    bytes[10] = bytes[11] = 0;
    memcpy(bytes + prefix, dictionary, length);
    memset(bytes + prefix + length, 0, data_bytes);
    return prefix + length + data_bytes;
}

/* Half of a row of tests: memory and file must agree in status, message and byte. */
static enum tb_status read_both(const unsigned char *bytes, size_t length, bool bfloat16,
                                struct logits *out, struct tb_error *error) {
    char path[] = "/tmp/topp_npy_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), (ssize_t)length);
    close(file);
    struct logits other;
    struct tb_error second = TB_ERROR_INIT;
    /* An exact copy on the heap: a sanitizer sees any read past its end. */
    unsigned char *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    const enum tb_status status = npy_read_memory(copy, length, "memory", bfloat16, out, error);
    free(copy);
    assert_int_equal(npy_read(path, bfloat16, &other, &second), status);
    assert_string_equal(second.message, error->message);
    assert_true(second.byte == error->byte);
    if (status == TB_OK) {
        assert_string_equal(other.sha256, out->sha256);
    } else {
        assert_string_equal(error->file, "memory");
        assert_string_equal(second.file, path);
        assert_null(out->data);
    }
    logits_free(&other);
    unlink(path);
    return status;
}

static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";

static void test_good_files(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int major;
        const char *dictionary;
        size_t bytes;
    } cases[] = {
        {"as numpy writes", 1, good, 24},
        {"format 2.0", 2, good, 24},
        {"tight", 1, "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n", 24},
        {"other order", 1, "{\"shape\": (2, 3,), 'fortran_order': False, 'descr': \"<f4\"}\n", 24},
        {"binary16", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3)}\n", 12},
        {"bfloat16", 1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3)}\n", 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[512];
        struct logits out;
        struct tb_error error = TB_ERROR_INIT;
        const size_t length = build(bytes, cases[i].major, cases[i].dictionary, cases[i].bytes);
        if (read_both(bytes, length, true, &out, &error) != TB_OK)
            fail_msg("%s: %s", cases[i].name, error.message);
        assert_int_equal(out.batch, 2);
        assert_int_equal(out.vocab, 3);
        assert_int_equal(out.stride, 3);
        logits_free(&out);
    }
}

static void test_bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *name, *dictionary;
        size_t data_bytes;
        int64_t byte; /* -2: any */
        const char *says;
    } cases[] = {
        {"no dictionary", "garbage garbage\n", 24, 10, "no dictionary"},
        {"empty header", "", 24, 10, "no dictionary"},
        {"bare key", "{descr: '<f4'}\n", 24, 11, "quoted key"},
        {"unknown key", "{'descr': '<f4', 'extra': 1}\n", 24, 27, "unknown key 'extra'"},
        {"twice", "{'descr': '<f4', 'descr': '<f4'}\n", 24, 27, "stands twice"},
        {"no colon", "{'descr' '<f4'}\n", 24, 19, "no `:`"},
        {"no comma", "{'descr': '<f4' 'shape': (2, 3)}\n", 24, 26, "without a comma"},
        {"missing shape", "{'descr': '<f4', 'fortran_order': False}\n", 24, 50,
         "'shape' is missing"},
        {"missing descr", "{'fortran_order': False, 'shape': (2, 3)}\n", 24, -2,
         "'descr' is missing"},
        {"missing order", "{'descr': '<f4', 'shape': (2, 3)}\n", 24, -2,
         "'fortran_order' is missing"},
        {"big-endian", "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}\n", 24, 20,
         "'>f4'"},
        {"binary64", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}\n", 48, 20,
         "'<f8'"},
        {"int", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)}\n", 24, 20, "'<i4'"},
        {"object", "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}\n", 24, 20, "'|O'"},
        {"record", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}\n", 24, 20,
         "no plain type"},
        {"u2 unasked", "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3)}\n", 12, 20,
         "only when asked"},
        {"Fortran", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}\n", 24, 44,
         "Fortran order"},
        {"order word", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}\n", 24, 44,
         "neither False nor True"},
        {"one dimension", "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}\n", 24, 60,
         "1 dimensions"},
        {"scalar", "{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n", 4, 60,
         "0 dimensions"},
        {"three", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}\n", 24, 60,
         "3 dimensions"},
        {"list", "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}\n", 24, 60, "no tuple"},
        {"negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}\n", 24, 61,
         "two whole numbers"},
        {"fraction", "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3)}\n", 24, 62,
         "comma or `)`"},
        {"open tuple", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3\n", 24, 65,
         "comma or `)`"},
        {"no rows", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}\n", 0, 60,
         "no logit"},
        {"no tokens", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0)}\n", 0, 60,
         "no logit"},
        {"past 64 bits",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3)}\n", 24, 61,
         "past 2^63"},
        {"product past 64 bits",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}\n", 24, 60,
         "past 2^63 bytes"},
        {"wraps to the size",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 2)}\n", 8, 60,
         "past 2^63 bytes"},
        {"wide vocabulary", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2147483648)}\n",
         24, 60, "2^31 - 1"},
        {"huge but possible",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999, 9999)}\n", 24, -2,
         "truncated"},
        {"after the end", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x\n", 24, 68,
         "one line end alone"},
        {"no line end", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}   ", 24, -2,
         "one line end alone"},
        {"truncated", good, 23, 96, "truncated: the data ends after 23 of 24"},
        {"no data", good, 0, 73, "truncated: the data ends after 0 of 24"},
        {"trailing", good, 25, 97, "1 bytes too many"},
        {"half the width", "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3)}\n", 24, -2,
         "12 bytes too many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[512];
        struct logits out;
        struct tb_error error = TB_ERROR_INIT;
        const size_t length = build(bytes, 1, cases[i].dictionary, cases[i].data_bytes);
        const enum tb_status status = read_both(bytes, length, false, &out, &error);
        if (status != TB_UNREADABLE || !strstr(error.message, cases[i].says) ||
            (cases[i].byte != -2 && error.byte != cases[i].byte))
            fail_msg("%s: status %d byte %d `%s`", cases[i].name, status, (int)error.byte,
                     error.message);
        assert_true(error.byte >= 0);
    }
}

/* A file cut at any byte, or changed in any byte of its start, is never a crash; cut, never OK. */
static void test_every_cut_and_change(void **state) {
    (void)state;
    unsigned char bytes[512];
    struct logits out;
    const size_t length = build(bytes, 1, good, 24);
    for (size_t cut = 0; cut < length; cut++) {
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(read_both(bytes, cut, false, &out, &error), TB_UNREADABLE);
        assert_true(error.byte >= 0 && error.byte <= (int64_t)cut);
    }
    for (size_t at = 0; at < length - 24; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct tb_error error = TB_ERROR_INIT;
            unsigned char *copy = malloc(length);
            memcpy(copy, bytes, length);
            copy[at] ^= (unsigned char)(1 << bit);
            if (npy_read_memory(copy, length, "flip", true, &out, &error) == TB_OK)
                logits_free(&out);
            else
                assert_true(error.code == TB_UNREADABLE && error.byte >= 0);
            free(copy);
        }
}

static void test_versions(void **state) {
    (void)state;
    static const struct {
        unsigned char major, minor;
    } versions[] = {{0, 0}, {1, 1}, {2, 1}, {3, 0}, {255, 0}};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        unsigned char bytes[512];
        struct logits out;
        struct tb_error error = TB_ERROR_INIT;
        const size_t length = build(bytes, 1, good, 24);
        bytes[6] = versions[i].major;
        bytes[7] = versions[i].minor;
        assert_int_equal(read_both(bytes, length, false, &out, &error), TB_UNREADABLE);
        assert_int_equal(error.byte, 6);
        assert_non_null(strstr(error.message, "1.0 or 2.0"));
    }
    unsigned char bytes[512];
    struct logits out;
    struct tb_error error = TB_ERROR_INIT;
    const size_t length = build(bytes, 2, good, 24);
    bytes[11] = 0x7F; /* a header of 2 GiB */
    assert_int_equal(read_both(bytes, length, false, &out, &error), TB_UNREADABLE);
    assert_int_equal(error.byte, 8);
}

static void test_no_files(void **state) {
    (void)state;
    static const struct {
        const char *path, *says;
    } cases[] = {{"/nonexistent/x.npy", "cannot be opened"},
                 {"/tmp", "no regular file"},
                 {"/dev/null", "no regular file"}};
    for (size_t i = 0; i < 3; i++) {
        struct logits out;
        struct tb_error error = TB_ERROR_INIT;
        int64_t batch, vocab;
        assert_int_equal(npy_read(cases[i].path, false, &out, &error), TB_UNREADABLE);
        assert_non_null(strstr(error.message, cases[i].says));
        assert_string_equal(error.file, cases[i].path);
        assert_int_equal(npy_shape(cases[i].path, &batch, &vocab, NULL), TB_UNREADABLE);
    }
}

/* ---- Widening ---- */

static float bits_to_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* All 65,536 values of a narrow type in one file. */
static struct logits read_all_narrow(const char *dictionary) {
    unsigned char *bytes = malloc(512 + 2 * 65536);
    struct logits out;
    struct tb_error error = TB_ERROR_INIT;
    const size_t length = build(bytes, 1, dictionary, 2 * 65536);
    for (uint32_t v = 0; v < 65536; v++) {
        bytes[length - 131072 + 2 * v] = v & 255;
        bytes[length - 131072 + 2 * v + 1] = (unsigned char)(v >> 8);
    }
    assert_int_equal(read_both(bytes, length, true, &out, &error), TB_OK);
    free(bytes);
    return out;
}

static void test_binary16(void **state) {
    (void)state;
    struct logits out =
        read_all_narrow("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 65536)}\n");
    for (uint32_t v = 0; v < 65536; v++) {
        const int exponent = (int)(v >> 10 & 31), fraction = (int)(v & 1023);
        double want = exponent == 0    ? ldexp(fraction, -24)
                      : exponent == 31 ? (fraction ? NAN : INFINITY)
                                       : ldexp(1024 + fraction, exponent - 25);
        want = v & 0x8000 ? -want : want;
        const float have = out.data[v];
        if (isnan(want))
            assert_true(isnan(have));
        else
            assert_true((double)have == want && !signbit(have) == !(v & 0x8000));
    }
    logits_free(&out);
}

static void test_bfloat16(void **state) {
    (void)state;
    struct logits out =
        read_all_narrow("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 65536)}\n");
    for (uint32_t v = 0; v < 65536; v++) {
        const float want = bits_to_float(v << 16);
        assert_memory_equal(&out.data[v], &want, sizeof want);
    }
    logits_free(&out);
}

/* ---- Writing ---- */

static void test_round_trip(void **state) {
    (void)state;
    enum { BATCH = 3, VOCAB = 5000, STRIDE = 5003 };
    float *data = malloc(sizeof(float) * BATCH * STRIDE);
    for (int i = 0; i < BATCH * STRIDE; i++)
        data[i] = bits_to_float((uint32_t)i * 2654435761u); /* NaN payloads and infinities too */
    char folder[] = "/tmp/topp_npy_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows.npy", folder);
    struct tb_error error = TB_ERROR_INIT;
    struct logits back;
    assert_int_equal(npy_write(path, data, BATCH, VOCAB, STRIDE, &error), TB_OK);
    assert_int_equal(npy_read(path, false, &back, &error), TB_OK);
    assert_int_equal(back.batch, BATCH);
    assert_int_equal(back.vocab, VOCAB);
    for (int r = 0; r < BATCH; r++)
        assert_memory_equal(back.data + r * VOCAB, data + r * STRIDE, VOCAB * sizeof(float));
    logits_free(&back);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
    assert_int_equal(npy_write(path, data, BATCH, VOCAB, STRIDE, &error), TB_IO);
    assert_string_equal(error.file, path);
    error = (struct tb_error)TB_ERROR_INIT;
    assert_int_equal(npy_write("/dev/full/x.npy", data, 1, 1, 1, &error), TB_IO);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files), cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_versions),   cmocka_unit_test(test_every_cut_and_change),
        cmocka_unit_test(test_no_files),   cmocka_unit_test(test_binary16),
        cmocka_unit_test(test_bfloat16),   cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
