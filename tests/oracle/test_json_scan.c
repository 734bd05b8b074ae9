/* JSON read in place: it takes what jansson takes, refuses what jansson refuses, and gives the same
 * numbers, texts and canonical form. */
#include "oracle/json_canonical.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
    "",
    " ",
    "{",
    "}",
    "{}",
    "[]",
    " [ ] ",
    "[1,2,3]",
    "[1,2,]",
    "[,1]",
    "[1 2]",
    "[1,,2]",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{a:1}",
    "{\"a\":}",
    "{\"a\":1 \"b\":2}",
    "{\"b\":[true,false,null],\"a\":{\"z\":{},\"y\":[]}}",
    "[tru]",
    "[truex]",
    "[nul]",
    "[NaN]",
    "[Infinity]",
    "[-]",
    "[0]",
    "[-0]",
    "[01]",
    "[1.]",
    "[.5]",
    "[1.5]",
    "[1e5]",
    "[1E+5]",
    "[1e]",
    "[1e-400]",
    "[0.1,1e22,1e23,123456789012345678,0.30000000000000004,17976931348623157e292]",
    "[9007199254740993.0,4503599627370497.5,5e-324,2.2250738585072014e-308,1.0000000000000002]",
    "[9223372036854775807,-9223372036854775808]",
    "[\"plain\",\"\",\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"]",
    "[\"\\u00e9\\ud83d\\ude00\"]",
    "[\"\\ud83d\"]",
    "[\"\\x\"]",
    "[\"\\u12\"]",
    "[\"a\nb\"]",
    "[\"a\tb\"]",
    "[\"open]",
    "[\"open\\\"]",
    "[\"\xc3\xa9\"]",
    "[\"\xff\"]",
    "[\"seven bytes\\\\, then a quote\"]",
    "[\"12345678\",\"1234567\",\"123456789\x01\"]",
    "{\"a\":1}x",
    "{\"a\":1} {}",
    "[1]\n",
    "/* no */ []",
};

/* Every number of an array, as the scan reads it. */
static void same_numbers(const json_t *array, const char *text) {
    struct json_scan scan = json_scan_of(text, strlen(text));
    size_t at = 0;
    assert_true(json_scan_array(&scan));
    for (; json_scan_item(&scan); at++) {
        const json_t *should = json_array_get(array, at);
        struct json_scan whole = scan;
        double value = -1.0;
        int64_t integer = -1;
        if (json_scan_peek(&scan) != JSON_SCAN_NUMBER) {
            assert_false(json_is_number(should));
            json_scan_skip(&scan, NULL);
            continue;
        }
        assert_true(json_scan_number(&scan, &value));
        const double right = json_number_value(should);
        assert_true(value == right);
        assert_int_equal(json_scan_integer(&whole, &integer), json_is_integer(should));
        if (json_is_integer(should))
            assert_int_equal(integer, json_integer_value(should));
    }
    assert_false(scan.bad);
    assert_int_equal(at, json_array_size(array));
}

static void same_strings(const json_t *array, const char *text) {
    struct json_scan scan = json_scan_of(text, strlen(text));
    struct json_span string;
    char decoded[200];
    size_t at = 0;
    for (json_scan_array(&scan); json_scan_item(&scan); at++) {
        if (json_scan_peek(&scan) != JSON_SCAN_STRING) {
            json_scan_skip(&scan, NULL);
            continue;
        }
        assert_true(json_scan_string(&scan, &string));
        assert_true(json_span_text(string, decoded, sizeof decoded));
        assert_string_equal(decoded, json_string_value(json_array_get(array, at)));
    }
}

static void test_as_jansson(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *json = json_loads(texts[i], JSON_REJECT_DUPLICATES, NULL);
        struct json_scan scan = json_scan_of(texts[i], strlen(texts[i]));
        const bool good = json_scan_skip(&scan, NULL) && json_scan_done(&scan);
        if (good != (json != NULL))
            fail_msg("'%s': jansson %s it, the scan does not", texts[i],
                     json ? "takes" : "refuses");
        if (json_is_array(json)) {
            same_numbers(json, texts[i]);
            same_strings(json, texts[i]);
        }
        json_decref(json);
    }
}

/* A cut text is refused, at its end; no byte behind it is read (the copy has none). */
static void test_cut(void **state) {
    (void)state;
    static const char whole[] =
        "{\"a\":[1.5,-2e3,\"t\\u00e9xt\",null,true],\"b\":{\"c\":\"plain text of some length\"}}";
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        char *copy = malloc(length ? length : 1);
        assert_non_null(copy);
        memcpy(copy, whole, length);
        struct json_scan scan = json_scan_of(copy, length);
        assert_false(json_scan_skip(&scan, NULL));
        assert_true(scan.bad);
        assert_true(scan.at <= copy + length);
        free(copy);
    }
}

static void test_deep(void **state) {
    (void)state;
    char text[4000];
    memset(text, '[', sizeof text);
    struct json_scan scan = json_scan_of(text, sizeof text);
    struct sha256_stream stream;
    char hex[SHA256_HEX_BYTES];
    assert_false(json_scan_skip(&scan, NULL));
    sha256_begin(&stream);
    assert_false(json_canonical((struct json_span){text, sizeof text}, &stream));
    sha256_end(&stream, hex);
}

static void test_canonical(void **state) {
    (void)state;
    static const char text[] =
        "{\"name\":\"b \\\"q\\\" \xc3\xa9\",\"aa\":0.10000000000000001,\"a\":{\"z\":[],\"k\":{},"
        "\"0\":1,\"\\\"\":2,\"\\\\\":3,\"]\":4,\"\\t\":5,\"\\u001f\":6,\" \":7},"
        "\"list\":[{\"y\":1,\"x\":null},[true,false],-0.0,1e-05],\"n\":123,\"gone\":[1,2,3]}";
    char should[SHA256_HEX_BYTES], is[SHA256_HEX_BYTES];
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    for (int pretty = 0; pretty < 2; pretty++) {
        char *copy =
            json_dumps(json, (pretty ? JSON_INDENT(3) : JSON_COMPACT) | JSON_REAL_PRECISION(17));
        struct json_pair pairs[JSON_MOST_PAIRS];
        struct sha256_stream stream;
        size_t count = 0;
        assert_int_equal(json_sha256(json, should, NULL), TB_OK);
        sha256_begin(&stream);
        assert_true(json_canonical((struct json_span){copy, strlen(copy)}, &stream));
        sha256_end(&stream, is);
        assert_string_equal(is, should);
        json_t *without = json_copy(json);
        json_object_del(without, "gone");
        assert_int_equal(json_sha256(without, should, NULL), TB_OK);
        sha256_begin(&stream);
        assert_true(
            json_pairs((struct json_span){copy, strlen(copy)}, pairs, JSON_MOST_PAIRS, &count));
        assert_int_equal(count, 6);
        assert_true(json_canonical_pairs(pairs, count, "gone", &stream));
        sha256_end(&stream, is);
        assert_string_equal(is, should);
        json_decref(without);
        free(copy);
    }
    json_decref(json);
}

/* Pieces of any size make the hash of the whole. */
static void test_stream(void **state) {
    (void)state;
    enum { BYTES = 10000 };
    char bytes[BYTES], should[SHA256_HEX_BYTES], is[SHA256_HEX_BYTES];
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 % 251);
    sha256_memory(bytes, BYTES, should);
    for (size_t step = 1; step < 3000; step = 3 * step + 1) {
        struct sha256_stream stream;
        sha256_begin(&stream);
        for (size_t at = 0; at < BYTES; at += step)
            sha256_put(&stream, bytes + at, BYTES - at < step ? BYTES - at : step);
        sha256_end(&stream, is);
        assert_string_equal(is, should);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_jansson), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_deep),       cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
