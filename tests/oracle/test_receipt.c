/* Seal, reading, hashes and the list of items of a receipt. */
#include "oracle/receipt.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "test_receipt.json";

static void test_hashes(void **state) {
    (void)state;
    /* FIPS 180-2, appendix B.1, and the empty message. */
    static const struct {
        const char *name, *text, *hex;
    } cases[] = {
        {"empty", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hex[SHA256_HEX_BYTES];
        struct tb_error error = TB_ERROR_INIT;
        sha256_memory(cases[i].text, strlen(cases[i].text), hex);
        assert_string_equal(hex, cases[i].hex);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].text, file);
        fclose(file);
        assert_int_equal(sha256_file(path, hex, &error), TB_OK);
        assert_string_equal(hex, cases[i].hex);
    }
    char hex[SHA256_HEX_BYTES];
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(sha256_file("no/such/file", hex, &error), TB_UNREADABLE);
    assert_string_equal(error.file, "no/such/file");
    unlink(path);
}

/* Order of keys and blanks make no difference, types and values do. */
static void test_canonical(void **state) {
    (void)state;
    static const struct {
        const char *name, *a, *b;
        bool equal;
    } cases[] = {
        {"order", "{\"a\":1,\"b\":2}", "{\"b\":2, \"a\":1}", true},
        {"value", "{\"a\":1}", "{\"a\":2}", false},
        {"type", "{\"a\":1}", "{\"a\":1.0}", false},
        {"null", "{\"a\":null}", "{}", false},
        {"array order", "[1,2]", "[2,1]", false},
        {"last place", "[0.1]", "[0.10000000000000002]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char a[SHA256_HEX_BYTES], b[SHA256_HEX_BYTES];
        json_t *one = json_loads(cases[i].a, 0, NULL), *two = json_loads(cases[i].b, 0, NULL);
        assert_int_equal(json_sha256(one, a, NULL), TB_OK);
        assert_int_equal(json_sha256(two, b, NULL), TB_OK);
        if (!strcmp(a, b) != cases[i].equal)
            fail_msg("%s", cases[i].name);
        json_decref(one);
        json_decref(two);
    }
}

static void test_seal(void **state) {
    (void)state;
    struct tb_error error = TB_ERROR_INIT;
    json_t *receipt = json_loads(
        "{\"run\":{\"date\":\"d\",\"seed\":42},\"cells\":[{\"median_ns\":1234.5}]}", 0, NULL);
    assert_int_equal(receipt_write(receipt, path, &error), TB_OK);
    json_decref(receipt);
    assert_int_equal(receipt_read(path, &receipt, &error), TB_OK);
    assert_true(receipt_seal_holds(receipt));
    json_t *run = json_object_get(receipt, "run");
    json_object_set_new(run, "seed", json_integer(43));
    assert_false(receipt_seal_holds(receipt));
    json_object_set_new(run, "seed", json_integer(42));
    assert_true(receipt_seal_holds(receipt));
    json_object_set_new(receipt, "more", json_null());
    assert_false(receipt_seal_holds(receipt));
    json_object_del(receipt, "more");
    json_object_set_new(receipt, "seal_sha256", json_string(""));
    assert_false(receipt_seal_holds(receipt));
    json_decref(receipt);
    receipt = json_object();
    assert_int_equal(receipt_write(receipt, "no/such/folder/r.json", &error), TB_IO);
    json_decref(receipt);
    unlink(path);
}

static void test_unreadable(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"empty", ""},
        {"garbage", "\x01\x02\x03"},
        {"cut", "{\"kind\":\"topp-bench receipt\","},
        {"array", "[]"},
        {"number", "7"},
        {"other kind", "{\"kind\":\"x\",\"schema\":1,\"seal_sha256\":\"\"}"},
        {"no kind", "{\"schema\":1,\"seal_sha256\":\"\"}"},
        {"no schema", "{\"kind\":\"topp-bench receipt\",\"seal_sha256\":\"\"}"},
        {"later schema", "{\"kind\":\"topp-bench receipt\",\"schema\":2,\"seal_sha256\":\"\"}"},
        {"text schema", "{\"kind\":\"topp-bench receipt\",\"schema\":\"1\",\"seal_sha256\":\"\"}"},
        {"no seal", "{\"kind\":\"topp-bench receipt\",\"schema\":1}"},
        {"number seal", "{\"kind\":\"topp-bench receipt\",\"schema\":1,\"seal_sha256\":1}"},
        {"twice", "{\"kind\":\"topp-bench receipt\",\"schema\":1,\"seal_sha256\":\"\",\"a\":1,"
                  "\"a\":1}"},
        {"rest", "{\"kind\":\"topp-bench receipt\",\"schema\":1,\"seal_sha256\":\"\"} x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_error error = TB_ERROR_INIT;
        json_t *receipt = NULL;
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].text, file);
        fclose(file);
        if (receipt_read(path, &receipt, &error) != TB_UNREADABLE || receipt)
            fail_msg("%s: was read", cases[i].name);
        assert_string_equal(error.file, path);
        assert_true(error.message[0] != '\0');
    }
    unlink(path);
}

static void test_items(void **state) {
    (void)state;
    struct receipt_items items = {0};
    assert_int_equal(receipt_exit_code(&items, true), 0);
    for (int i = 0; i < 200; i++)
        receipt_add(&items, RECEIPT_VERIFIED, "inputs", "a", "%s", "");
    assert_int_equal(receipt_exit_code(&items, true), 0);
    receipt_add(&items, RECEIPT_ELSEWHERE, "masks", "b", "no %s", "GPU");
    assert_int_equal(receipt_exit_code(&items, false), 0);
    assert_int_equal(receipt_exit_code(&items, true), 3);
    receipt_add(&items, RECEIPT_CHANGED, "inputs", "c", "differs");
    assert_int_equal(receipt_exit_code(&items, false), 1);
    assert_int_equal(receipt_exit_code(&items, true), 1);
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    receipt_items_print(&items, stream);
    fclose(stream);
    assert_string_equal(text, "inputs       200 verified, 1 changed\n"
                              "masks        1 not recomputable here\n"
                              "not recomputable here: masks: b: no GPU\n"
                              "changed: inputs: c: differs\n"
                              "200 verified, 1 changed, 1 not recomputable here\n");
    free(text);
    receipt_items_free(&items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes), cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_seal),   cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
