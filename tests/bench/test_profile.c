/* Profiles: every defect is an error that names file, line and key. */
#include "bench/profile.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The line numbers of the defects below are those of this text. */
static const char good[] =
    "{\n"
    "  \"schema\": \"topp-bench.profile/1\",\n"
    "  \"name\": \"tiny\",\n"
    "  \"device\": \"any\",\n"
    "  \"seed\": 42,\n"
    "  \"limits\": {\"max_vocab\": 5000, \"max_batch\": 16,\n"
    "    \"case_seconds\": 60, \"artifact_bytes\": 2000000},\n"
    "  \"timing\": {\"blocks\": 2, \"min_samples\": 3,\n"
    "    \"max_samples\": 9, \"precision\": 0.05, \"block_seconds\": 0.5,\n"
    "    \"warmup_seconds\": 0, \"draws\": 4},\n"
    "  \"l2\": [\"warm\", \"cold\"],\n"
    "  \"launch\": [\"graph\"],\n"
    "  \"matrix\": [\n"
    "    {\"kind\": \"topp\", \"kernels\": [\"sort\", \"exact\"],\n"
    "     \"families\": [\"normal\",\n"
    "                  \"forced=1e9@13\"],\n"
    "     \"vocab\": [1000, 5000],\n"
    "     \"batch\": [1, 16],\n"
    "     \"p\": [0.5, \"1-2^-24\"]},\n"
    "    {\"kind\": \"gumbel\", \"variants\": \"all\", \"families\": [\"peaked\"],\n"
    "     \"vocab\": [1000], \"batch\": [4], \"temperature\": [1, 0.6]},\n"
    "    {\"kind\": \"gumbel_statistic\", \"variants\": [\"log\"],\n"
    "     \"statistics\": [\"heavy_tail\"]}\n"
    "  ],\n"
    "  \"expect\": [\n"
    "    {\"kernel\": \"sort\", \"family\": \"forced=*\", \"expect\": \"either\",\n"
    "     \"share\": 0.5, \"why\": \"a test\"},\n"
    "    {\"kernel\": \"log\", \"family\": \"statistic=*\",\n"
    "     \"expect\": \"reject\", \"why\": \"its tail ends\"}\n"
    "  ]\n"
    "}\n";

static const struct {
    const char *name, *find, *put;
    int line;
    const char *key, *says;
} defects[] = {
    {"syntax", "\"seed\": 42,", "\"seed\": 42", 6, "", "no valid JSON"},
    {"not a number", "42,", "NaN,", 5, "", "no valid JSON"},
    {"key twice", "\"seed\": 42,", "\"seed\": 42, \"seed\": 43,", 5, "", "duplicate"},
    {"unknown key", "\"seed\": 42,", "\"seed\": 42, \"sed\": 1,", 5, "`sed`", "unknown key"},
    {"schema", "profile/1", "profile/2", 2, "`schema`", "topp-bench.profile/1"},
    {"schema type", "\"topp-bench.profile/1\"", "1", 2, "`schema`", "a number where a string"},
    {"no schema", "  \"schema\": \"topp-bench.profile/1\",\n", "\n", 1, "top level", "`schema`"},
    {"no name", "  \"name\": \"tiny\",", "", 1, "top level", "`name` is missing"},
    {"empty name", "\"tiny\"", "\"\"", 3, "`name`", "empty string"},
    {"zero byte", "\"tiny\"", "\"t\\u0000y\"", 3, "", "\\u0000"},
    {"device", "\"any\"", "\"gpu\"", 4, "`device`", "any, cpu, cuda"},
    {"seed fraction", "42,", "42.5,", 5, "`seed`", "a fraction where a whole number"},
    {"seed text", "42,", "\"42\",", 5, "`seed`", "a string where a whole number"},
    {"seed too wide", "42,", "99999999999999999999,", 5, "", "no valid JSON"},
    {"limits list",
     "{\"max_vocab\": 5000, \"max_batch\": 16,\n    \"case_seconds\": 60, "
     "\"artifact_bytes\": 2000000}",
     "[]", 6, "`limits`", "an array where an object"},
    {"limit 0", "\"max_batch\": 16", "\"max_batch\": 0", 6, "`limits.max_batch`", "wanted 1 to"},
    {"limit missing", "\"max_vocab\": 5000, ", "", 6, "`limits`", "`max_vocab` is missing"},
    {"limit unknown", "\"case_seconds\"", "\"seconds\": 1, \"case_seconds\"", 7, "`limits.seconds`",
     "unknown key"},
    {"no time", "\"case_seconds\": 60", "\"case_seconds\": 0", 7, "`limits.case_seconds`",
     "wanted 0.001"},
    {"no blocks", "\"blocks\": 2", "\"blocks\": 0", 8, "`timing.blocks`", "wanted 1 to 1000"},
    {"samples", "\"max_samples\": 9", "\"max_samples\": 2", 9, "`timing.max_samples`",
     "less than min_samples 3"},
    {"precision", "0.05", "2", 9, "`timing.precision`", "wanted 1e-06 to 1"},
    {"precision text", "0.05", "\"5%\"", 9, "`timing.precision`", "a string where a number"},
    {"draws", "\"draws\": 4", "\"draws\": 0", 10, "`timing.draws`", "wanted 1 to 64"},
    {"l2", "\"cold\"]", "\"hot\"]", 11, "`l2[1]`", "warm, cold"},
    {"l2 twice", "\"cold\"]", "\"warm\"]", 11, "`l2[1]`", "stands twice"},
    {"l2 on a CPU", "\"any\"", "\"cpu\"", 11, "`l2`", "belongs to CUDA"},
    {"launch", "[\"graph\"]", "[\"graphs\"]", 12, "`launch[0]`", "stream, graph"},
    {"launch empty", "[\"graph\"]", "[]", 12, "`launch`", "is empty"},
    {"kind", "\"topp\"", "\"top_p\"", 14, "`matrix[0].kind`", "gumbel_statistic"},
    {"entry", "{\"kind\": \"gumbel_statistic\"", "7, {\"kind\": \"gumbel_statistic\"", 22,
     "`matrix[2]`", "no object"},
    {"kernel", "\"exact\"]", "\"exakt\"]", 14, "`matrix[0].kernels[1]`", "no top-p kernel `exakt`"},
    {"kernel twice", "\"exact\"]", "\"sort\"]", 14, "`matrix[0].kernels[1]`", "stands twice"},
    {"kernels word", "[\"sort\", \"exact\"]", "\"every\"", 14, "`matrix[0].kernels`", "\"all\""},
    {"variant", "[\"log\"]", "[\"logs\"]", 22, "`matrix[2].variants[0]`", "no Gumbel variant"},
    {"family", "\"normal\",", "\"norml\",", 15, "`matrix[0].families[0]`", "unknown family"},
    {"family form", "forced=1e9@13", "forced=1e9", 16, "`matrix[0].families[1]`", "VALUE@ID"},
    {"family twice", "forced=1e9@13", "normal", 16, "`matrix[0].families[1]`", "stands twice"},
    {"forced id", "forced=1e9@13", "forced=1e9@1000", 17, "`matrix[0].vocab[0]`", "no token 1000"},
    {"vocab past limit", "5000]", "5001]", 17, "`matrix[0].vocab[1]`", "wanted 1 to 5000"},
    {"vocab twice", "5000]", "1000]", 17, "`matrix[0].vocab[1]`", "stands twice"},
    {"vocab empty", "[1000, 5000]", "[]", 17, "`matrix[0].vocab`", "is empty"},
    {"vocab number", "[1000, 5000]", "1000", 17, "`matrix[0].vocab`", "a number where an array"},
    {"no vocab", "     \"vocab\": [1000, 5000],\n", "\n", 14, "`matrix[0]`", "`vocab` is missing"},
    {"batch past limit", "[1, 16]", "[1, 17]", 18, "`matrix[0].batch[1]`", "wanted 1 to 16"},
    {"batch 0", "[1, 16]", "[0]", 18, "`matrix[0].batch[0]`", "wanted 1"},
    {"p 0", "[0.5, ", "[0, ", 19, "`matrix[0].p[0]`", "above 0"},
    {"p negative", "[0.5, ", "[-0.5, ", 19, "`matrix[0].p[0]`", "above 0"},
    {"p past 1", "[0.5, ", "[1.5, ", 19, "`matrix[0].p[0]`", "at most 1"},
    {"p too small", "[0.5, ", "[1e-60, ", 19, "`matrix[0].p[0]`", "above 0"},
    {"p text", "1-2^-24", "1-2^-25", 19, "`matrix[0].p[1]`", "K from 1 to 24"},
    {"p twice", "[0.5, ", "[0.99999994, ", 19, "`matrix[0].p[1]`", "same binary32"},
    {"p null", "[0.5, ", "[null, ", 19, "`matrix[0].p[0]`", "null where a number"},
    {"p of gumbel", "\"temperature\"", "\"p\": [0.5], \"temperature\"", 21, "`matrix[1].p`",
     "unknown key"},
    {"temperature", "[1, 0.6]", "[1, -1]", 21, "`matrix[1].temperature[1]`", "wanted 0"},
    {"statistic", "heavy_tail", "heavy", 23, "`matrix[2].statistics[0]`", "whole_vocabulary"},
    {"timed word", "\"batch\": [1, 16]", "\"timed\": 1, \"batch\": [1, 16]", 18,
     "`matrix[0].timed`", "true or false"},
    {"padding", "\"batch\": [1, 16]", "\"padding\": -1, \"batch\": [1, 16]", 18,
     "`matrix[0].padding`", "wanted 0"},
    {"captured vocab", "\"normal\",\n                  \"forced=1e9@13\"", "\n\"captured=x\"", 17,
     "`matrix[0].vocab`", "bring their own"},
    {"verdict", "\"either\"", "\"maybe\"", 26, "`expect[0].expect`", "accept, reject, either"},
    {"share", "\"share\": 0.5", "\"share\": 1.5", 27, "`expect[0].share`", "wanted 0 to 1"},
    {"share of a reject", "\"expect\": \"reject\"", "\"expect\": \"reject\", \"share\": 0.5", 29,
     "`expect[1].share`", "`either` alone"},
    {"rule", "\"expect\": \"reject\"", "\"expect\": \"reject\", \"rule\": \"holes\"", 29,
     "`expect[1].rule`", "no rule of the gate"},
    {"rule of an either", "\"share\": 0.5", "\"rule\": \"envelope\"", 27, "`expect[0].rule`",
     "`reject` alone"},
    {"no why", ", \"why\": \"a test\"", "", 26, "`expect[0]`", "`why` is missing"},
    {"expect empty", NULL, NULL, 0, "`expect`", "is empty"},
    {"matrix empty", NULL, NULL, 0, "`matrix`", "is empty"},
};

/* good with the first `find` replaced; the caller frees. */
static char *changed(const char *find, const char *put) {
    const char *at = strstr(good, find);
    assert_non_null(at);
    char *text = malloc(sizeof good + strlen(put));
    const size_t before = (size_t)(at - good);
    memcpy(text, good, before);
    strcpy(text + before, put);
    strcat(text, at + strlen(find));
    return text;
}

static enum tb_status load_text(const char *text, struct profile *profile, struct tb_error *error,
                                char path[32]) {
    strcpy(path, "/tmp/topp_profile_XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const enum tb_status status = profile_load(path, profile, error);
    unlink(path);
    return status;
}

static void test_defects(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        struct profile profile;
        struct tb_error error = TB_ERROR_INIT;
        char path[32], *text;
        if (defects[i].find) {
            text = changed(defects[i].find, defects[i].put);
        } else { /* a whole list emptied: up to its line of its own closing bracket */
            text = changed("", "");
            char *list =
                strstr(text, defects[i].key[1] == 'e' ? "\"expect\": [\n" : "\"matrix\": [");
            list = strchr(list, '[') + 1;
            const char *end = strstr(list, "\n  ]");
            memmove(list, end, strlen(end) + 1);
        }
        const enum tb_status status = load_text(text, &profile, &error, path);
        free(text);
        if (status != TB_UNREADABLE || !strstr(error.message, defects[i].says) ||
            !strstr(error.message, defects[i].key) || strcmp(error.file, path) != 0 ||
            error.line < 1 || (defects[i].line && error.line != defects[i].line))
            fail_msg("%s: status %d, %s:%d `%s`", defects[i].name, status, error.file,
                     (int)error.line, error.message);
    }
}

static void test_good(void **state) {
    (void)state;
    struct profile profile;
    struct tb_error error = TB_ERROR_INIT;
    char path[32];
    if (load_text(good, &profile, &error, path) != TB_OK)
        fail_msg("%d: %s", (int)error.line, error.message);
    assert_string_equal(profile.name, "tiny");
    assert_int_equal(profile.entry_count, 3);
    assert_int_equal(profile.expect_count, 2);
    assert_int_equal(profile.modes.l2_count, 2);
    assert_string_equal(profile.entries[0].p.text[1], "1-2^-24");
    assert_true(profile.entries[0].p.at[1] == 0x1.fffffep-1f);
    assert_true(profile.entries[1].kernels.all);
    assert_string_equal(profile.entries[1].temperature.text[1], "0.6");
    assert_true(profile.expects[0].share == 0.5 && profile.expects[1].share == 0);
    assert_int_equal(strlen(profile.source.sha256), 64);
    profile_free(&profile);
}

/* A comma locale changes neither what is read nor how p is written. */
static void test_locale(void **state) {
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "de_DE"))
        skip();
    struct profile profile;
    struct tb_error error = TB_ERROR_INIT;
    char path[32];
    const enum tb_status status = load_text(good, &profile, &error, path);
    setlocale(LC_ALL, "C");
    assert_int_equal(status, TB_OK);
    assert_string_equal(profile.entries[0].p.text[0], "0.5");
    profile_free(&profile);
}

/* Cut anywhere it is an error, and never a crash. */
static void test_every_cut(void **state) {
    (void)state;
    for (size_t cut = 0; cut + 2 < sizeof good; cut += 7) {
        struct profile profile;
        struct tb_error error = TB_ERROR_INIT;
        char path[32], text[sizeof good] = "";
        memcpy(text, good, cut);
        assert_int_equal(load_text(text, &profile, &error, path), TB_UNREADABLE);
        assert_string_equal(error.file, path);
    }
}

/* Lines are found in text without line ends after braces too. */
static void test_lines(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\":{\"b\":{}},\n\"c\":[[],[{\"d\":1}],\n{\"e\\\"}\":2,\n\"f\":\"}]\"}],"
        "\n\"g\":3}";
    static const struct {
        const char *path;
        int line;
    } cases[] = {{"a", 1},         {"a.b", 1},     {"c", 2},        {"c[0]", 2},
                 {"c[1][0].d", 2}, {"c[2]", 3},    {"c[2].f", 4},   {"c[2].missing", 3},
                 {"g", 5},         {"nowhere", 1}, {"c[1][0].x", 2}};
    const struct json_source source = {.text = (char *)(uintptr_t)text, .length = sizeof text - 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (json_source_line(&source, cases[i].path) != cases[i].line)
            fail_msg("%s: line %d", cases[i].path, (int)json_source_line(&source, cases[i].path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),   cmocka_unit_test(test_defects),
        cmocka_unit_test(test_locale), cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
