/* The oracle's cache: the same figures to the last bit, whatever lies in its folder. */
#include "program.h"

#include "bench/oracle_cache.h"
#include "bench/oracle_entry.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 3, VOCAB = 500, P_COUNT = 3, PATH = 512, WRITERS = 4, ROUNDS = 40 };

static const char sources[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const float p_values[P_COUNT] = {0.5f, 0.9f, 1.0f};

static char dir[96];
static struct logits logits;
static float p[BATCH * P_COUNT];
static struct nucleus plain[BATCH * P_COUNT];

static int make_all(void **state) {
    struct family family;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(scratch_make(state), 0);
    assert_int_equal(family_parse("masked=0.5", &family, &error), TB_OK);
    const struct input_request request = {
        .family = &family, .batch = BATCH, .vocab = VOCAB, .stride = VOCAB + 5, .seed = 42};
    assert_int_equal(input_make(&request, &logits, &error), TB_OK);
    for (int i = 0; i < BATCH * P_COUNT; i++)
        p[i] = p_values[i % P_COUNT];
    assert_int_equal(
        nucleus_rows(logits.data, BATCH, VOCAB, logits.stride, p, P_COUNT, 1, plain, &error),
        TB_OK);
    return 0;
}

static int drop_all(void **state) {
    logits_free(&logits);
    return scratch_drop(state);
}

static int fresh_dir(void **state) {
    static int number;
    (void)state;
    snprintf(dir, sizeof dir, "%s/cache%d/deep", scratch, number++);
    return 0;
}

static bool same(const struct nucleus *a, const struct nucleus *b) {
    return a->status == b->status && a->untouched == b->untouched && a->kept == b->kept &&
           a->boundary_token == b->boundary_token &&
           !memcmp(&a->boundary_logit, &b->boundary_logit, sizeof a->boundary_logit) &&
           !memcmp(&a->max_logit, &b->max_logit, sizeof a->max_logit) &&
           !memcmp(&a->normalizer, &b->normalizer, sizeof a->normalizer) &&
           !memcmp(&a->target, &b->target, sizeof a->target) &&
           !memcmp(&a->prefix, &b->prefix, sizeof a->prefix) &&
           !memcmp(&a->prefix_less, &b->prefix_less, sizeof a->prefix_less);
}

/* Asks for all, demands the plain oracle's answer, returns the counts. */
static struct oracle_cache_counts ask(const char *name, const char *sources_of, FILE *said) {
    struct nucleus out[BATCH * P_COUNT];
    struct oracle_cache *cache;
    struct tb_error error = TB_ERROR_INIT;
    memset(out, 0xa5, sizeof out);
    assert_int_equal(oracle_cache_open(dir, sources_of, said, &cache, &error), TB_OK);
    assert_int_equal(oracle_rows(cache, &logits, p, P_COUNT, 1, out, &error), TB_OK);
    for (int i = 0; i < BATCH * P_COUNT; i++)
        if (!same(&out[i], &plain[i]))
            fail_msg("%s: row %d, p %g differs from the plain oracle", name, i / P_COUNT,
                     (double)p[i]);
    const struct oracle_cache_counts counts = oracle_cache_counts(cache);
    oracle_cache_close(cache);
    return counts;
}

static void expect(const char *name, struct oracle_cache_counts counts, int64_t read,
                   int64_t computed, int64_t damaged, int64_t unwritten) {
    if (counts.read != read || counts.computed != computed || counts.damaged != damaged ||
        counts.unwritten != unwritten)
        fail_msg("%s: read %lld, computed %lld, damaged %lld, unwritten %lld", name,
                 (long long)counts.read, (long long)counts.computed, (long long)counts.damaged,
                 (long long)counts.unwritten);
}

/* Files under a folder; the first one's path. */
static int files_under(const char *folder, char *first) {
    int count = 0;
    DIR *open = opendir(folder);
    const struct dirent *item;
    if (!open)
        return 0;
    while ((item = readdir(open))) {
        char path[PATH];
        struct stat found;
        if (item->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
        assert_int_equal(stat(path, &found), 0);
        if (S_ISDIR(found.st_mode)) {
            count += files_under(path, first);
        } else {
            count++;
            if (first)
                snprintf(first, PATH, "%s", path);
        }
    }
    closedir(open);
    return count;
}

static void test_read_back(void **state) {
    (void)state;
    expect("first", ask("first", sources, NULL), 0, P_COUNT, 0, 0);
    assert_int_equal(files_under(dir, NULL), P_COUNT);
    expect("second", ask("second", sources, NULL), P_COUNT, 0, 0, 0);
}

/* Another oracle, the same bytes in another shape, other p in one row: none is taken for the
 * other. */
static void test_what_decides(void **state) {
    (void)state;
    static float rows[2 * 6] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7};
    struct nucleus out[4], direct[4];
    struct oracle_cache *cache;
    struct tb_error error = TB_ERROR_INIT;
    struct logits small = {.data = rows, .batch = 2, .vocab = 6, .stride = 6};
    const float mixed[2] = {0.5f, 1.0f}, even[2] = {0.5f, 0.5f};
    ask("one oracle", sources, NULL);
    expect("another oracle", ask("another", "other", NULL), 0, P_COUNT, 0, 0);
    assert_int_equal(logits_hash(&small, &error), TB_OK);
    assert_int_equal(oracle_cache_open(dir, sources, NULL, &cache, &error), TB_OK);
    const struct {
        const char *name;
        int64_t batch, vocab;
        const float *p;
    } cases[] = {{"even", 2, 6, even}, {"mixed", 2, 6, mixed}, {"one row", 1, 12, even}};
    for (size_t i = 0; i < 3; i++) {
        small.batch = cases[i].batch;
        small.vocab = small.stride = cases[i].vocab;
        assert_int_equal(oracle_rows(cache, &small, cases[i].p, 1, 1, out, &error), TB_OK);
        assert_int_equal(nucleus_rows(rows, small.batch, small.vocab, small.stride, cases[i].p, 1,
                                      1, direct, &error),
                         TB_OK);
        for (int64_t row = 0; row < small.batch; row++)
            if (!same(&out[row], &direct[row]))
                fail_msg("%s: row %lld is another question's", cases[i].name, (long long)row);
    }
    expect("shapes and p", oracle_cache_counts(cache), 0, 3, 0, 0);
    oracle_cache_close(cache);
}

/* Ways to spoil one entry. */
static void spoil_empty(const char *path) {
    file_write(path, "", 0);
}

static void spoil_cut(const char *path) {
    size_t length;
    char *text = file_text(path, &length);
    file_write(path, text, length / 2);
    free(text);
}

static void spoil_garbage(const char *path) {
    file_write(path, "\0\xff{}", 4);
}

static void spoil_digit(const char *path) {
    size_t length;
    char *text = file_text(path, &length), *digit = strstr(text, "\"rows\":[[\"ok\",");
    assert_non_null(digit);
    digit += strlen("\"rows\":[[\"ok\",");
    *digit = *digit == '1' ? '2' : '1';
    file_write(path, text, length);
    free(text);
}

/* The last bit of the last row's last figure: nothing but the seal can tell. */
static void spoil_last_bit(const char *path) {
    json_t *file = json_load_file(path, 0, NULL);
    json_t *row = json_array_get(json_object_get(file, "rows"), BATCH - 1);
    const size_t last = json_array_size(row) - 1;
    const double figure = json_real_value(json_array_get(row, last));
    assert_int_equal(json_array_set_new(row, last, json_real(nextafter(figure, 1e9))), 0);
    assert_int_equal(json_dump_file(file, path, JSON_COMPACT | JSON_REAL_PRECISION(17)), 0);
    json_decref(file);
}

static void spoil_deep(const char *path) {
    char nested[4096];
    memset(nested, '[', sizeof nested);
    file_write(path, nested, sizeof nested);
}

/* Sealed again after a change, as a program with a fault of its own would. */
static void reseal(const char *path, void (*change)(json_t *file)) {
    char hex[SHA256_HEX_BYTES];
    json_t *file = json_load_file(path, 0, NULL);
    assert_non_null(file);
    change(file);
    json_object_del(file, "sha256");
    assert_int_equal(json_sha256(file, hex, NULL), TB_OK);
    json_object_set_new(file, "sha256", json_string(hex));
    assert_int_equal(json_dump_file(file, path, JSON_COMPACT | JSON_REAL_PRECISION(17)), 0);
    json_decref(file);
}

static json_t *first_row(json_t *file) {
    return json_array_get(json_object_get(file, "rows"), 0);
}

static void change_kept(json_t *file) {
    json_array_set_new(first_row(file), 1,
                       json_integer(json_integer_value(json_array_get(first_row(file), 1)) + 1));
}

static void change_status(json_t *file) {
    json_array_set_new(first_row(file), 0, json_string("empty_row"));
}

static void change_target(json_t *file) {
    json_array_set_new(first_row(file), 6, json_real(0.125));
}

static void change_token(json_t *file) {
    json_array_set_new(first_row(file), 2, json_integer(VOCAB + 100000));
}

static void change_rows(json_t *file) {
    json_array_remove(json_object_get(file, "rows"), 0);
}

static void change_schema(json_t *file) {
    json_object_set_new(file, "schema", json_string("topp-bench.oracle/2"));
}

static void change_p(json_t *file) {
    json_object_set_new(file, "p_sha256", json_string(sources));
}

#define RESEALED(change)                                                                           \
    static void spoil_##change(const char *path) {                                                 \
        reseal(path, change);                                                                      \
    }
RESEALED(change_kept)
RESEALED(change_status)
RESEALED(change_target)
RESEALED(change_token)
RESEALED(change_rows)
RESEALED(change_schema)
RESEALED(change_p)

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*spoil)(const char *path);
    } cases[] = {
        {"empty", spoil_empty},
        {"cut", spoil_cut},
        {"garbage", spoil_garbage},
        {"a digit", spoil_digit},
        {"the last bit", spoil_last_bit},
        {"nested", spoil_deep},
        {"count, sealed again", spoil_change_kept},
        {"status, sealed again", spoil_change_status},
        {"target, sealed again", spoil_change_target},
        {"token, sealed again", spoil_change_token},
        {"a row less, sealed again", spoil_change_rows},
        {"schema, sealed again", spoil_change_schema},
        {"p, sealed again", spoil_change_p},
    };
    ask("fill", sources, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[PATH], *text = NULL;
        size_t length = 0;
        FILE *said = open_memstream(&text, &length);
        assert_int_equal(files_under(dir, path), P_COUNT);
        cases[i].spoil(path);
        expect(cases[i].name, ask(cases[i].name, sources, said), P_COUNT - 1, 1, 1, 0);
        fclose(said);
        if (!strstr(text, path) || !strstr(text, "damaged"))
            fail_msg("%s: says '%s'", cases[i].name, text);
        free(text);
        expect("mended", ask("mended", sources, NULL), P_COUNT, 0, 0, 0);
    }
}

/* A folder of an entry is a file, an entry is a folder: time is lost, nothing else. */
static void test_unwritable(void **state) {
    (void)state;
    char path[PATH], folder[PATH], *text = NULL;
    size_t length = 0;
    struct oracle_cache *cache;
    struct tb_error error = TB_ERROR_INIT;
    ask("fill", sources, NULL);
    assert_int_equal(files_under(dir, path), P_COUNT);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    const int there = files_under(folder, NULL);
    while (files_under(folder, path))
        unlink(path);
    assert_int_equal(rmdir(folder), 0);
    file_write(folder, "x", 1);
    FILE *said = open_memstream(&text, &length);
    expect("a file in the way", ask("a file in the way", sources, said), P_COUNT - there, there, 0,
           there);
    fclose(said);
    assert_non_null(strstr(text, "cannot be kept"));
    free(text);
    assert_int_equal(oracle_cache_open(folder, sources, NULL, &cache, &error), TB_IO);
    assert_null(cache);
}

/* A folder of someone else's: why nothing is kept, and what is there is still read. */
static void test_read_only(void **state) {
    (void)state;
    const uid_t user = geteuid();
    char *text = NULL;
    size_t length = 0;
    struct oracle_cache *cache;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(oracle_cache_open(dir, sources, NULL, &cache, &error), TB_OK); /* makes it */
    oracle_cache_close(cache);
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(chmod(dir, 0555), 0);
    if (user == 0) /* whom no mode keeps out */
        assert_int_equal(seteuid(65534), 0);
    FILE *said = open_memstream(&text, &length);
    expect("read-only", ask("read-only", sources, said), 0, P_COUNT, 0, P_COUNT);
    fclose(said);
    if (user == 0)
        assert_int_equal(seteuid(user), 0);
    assert_non_null(strstr(text, strerror(EACCES)));
    free(text);
    assert_int_equal(chmod(dir, 0755), 0);
    ask("fill", sources, NULL);
    assert_int_equal(chmod(dir, 0555), 0);
    expect("read-only, filled", ask("read-only, filled", sources, NULL), P_COUNT, 0, 0, 0);
    assert_int_equal(chmod(dir, 0755), 0);
}

/* A plug-in's process finds the entries, keeps none, and its counts become the owner's. */
static void test_reader(void **state) {
    (void)state;
    struct oracle_cache *owner, *reader;
    struct nucleus out[BATCH * P_COUNT];
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(oracle_cache_open(dir, sources, NULL, &owner, &error), TB_OK);
    json_t *address = oracle_cache_address(owner);
    for (int round = 0; round < 2; round++) { /* before and after the owner kept its entries */
        assert_int_equal(oracle_cache_read_at(address, &reader, &error), TB_OK);
        assert_int_equal(oracle_rows(reader, &logits, p, P_COUNT, 1, out, &error), TB_OK);
        for (int i = 0; i < BATCH * P_COUNT; i++)
            assert_true(same(&out[i], &plain[i]));
        expect("reader", oracle_cache_counts(reader), round * P_COUNT, (1 - round) * P_COUNT, 0, 0);
        json_t *counts = oracle_cache_take_counts(reader);
        oracle_cache_add_counts(owner, counts);
        json_decref(counts);
        expect("taken", oracle_cache_counts(reader), 0, 0, 0, 0);
        oracle_cache_close(reader);
        if (round == 0) {
            assert_int_equal(files_under(dir, NULL), 0);
            expect("filled", ask("filled", sources, NULL), 0, P_COUNT, 0, 0);
        }
    }
    expect("owner", oracle_cache_counts(owner), P_COUNT, P_COUNT, 0, 0);
    json_t *lie = json_pack("{s:i, s:I}", "read", -1, "computed", (json_int_t)INT64_MAX);
    oracle_cache_add_counts(owner, lie);
    expect("a lie", oracle_cache_counts(owner), P_COUNT, P_COUNT, 0, 0);
    json_decref(lie);
    json_decref(address);
    oracle_cache_close(owner);

    json_t *none = oracle_cache_address(NULL);
    assert_int_equal(oracle_cache_read_at(none, &reader, &error), TB_OK);
    assert_null(reader);
    json_decref(none);
    assert_int_equal(oracle_cache_read_at(NULL, &reader, &error), TB_INTERNAL);
}

/* Several processes fill one folder at the same time, and each finds what it should. */
static void test_concurrent(void **state) {
    (void)state;
    pid_t child[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        child[w] = fork();
        assert_true(child[w] >= 0);
        if (child[w])
            continue;
        int bad = 0;
        for (int round = 0; round < ROUNDS && !bad; round++) {
            struct nucleus out[BATCH * P_COUNT];
            struct oracle_cache *cache;
            char which[16];
            snprintf(which, sizeof which, "%d", round); /* all write this round's entries */
            bad |= oracle_cache_open(dir, which, NULL, &cache, NULL) != TB_OK;
            bad |= oracle_rows(cache, &logits, p, P_COUNT, 1, out, NULL) != TB_OK;
            for (int i = 0; i < BATCH * P_COUNT; i++)
                bad |= !same(&out[i], &plain[i]);
            const struct oracle_cache_counts counts = oracle_cache_counts(cache);
            bad |= counts.damaged != 0 || counts.unwritten != 0 ||
                   counts.read + counts.computed != P_COUNT;
            oracle_cache_close(cache);
        }
        _exit(bad);
    }
    for (int w = 0; w < WRITERS; w++) {
        int how = 0;
        assert_int_equal(waitpid(child[w], &how, 0), child[w]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    assert_int_equal(files_under(dir, NULL), ROUNDS * P_COUNT); /* no temporary file is left */
    for (int round = 0; round < ROUNDS; round++) {
        char which[16];
        snprintf(which, sizeof which, "%d", round);
        expect("after all", ask("after all", which, NULL), P_COUNT, 0, 0, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_read_back, fresh_dir),
        cmocka_unit_test_setup(test_what_decides, fresh_dir),
        cmocka_unit_test_setup(test_damaged, fresh_dir),
        cmocka_unit_test_setup(test_unwritable, fresh_dir),
        cmocka_unit_test_setup(test_read_only, fresh_dir),
        cmocka_unit_test_setup(test_reader, fresh_dir),
        cmocka_unit_test_setup(test_concurrent, fresh_dir),
    };
    return cmocka_run_group_tests(tests, make_all, drop_all);
}
