/* The command line: what is refused and how it is said, and that docs list every option. */
#include "bench/options.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 12 };

struct line {
    const char *name;
    const char *words[MOST_WORDS];
    const char *says; /* part of the message; NULL: argp's own, on standard error */
};

/* One row for each rule of options.c. */
static const struct line refused[] = {
    {"nothing", {NULL}, "nothing to do"},
    {"unknown option", {"--sweep", "--fast"}, NULL},
    {"unknown short option", {"-x"}, NULL},
    {"bare word", {"--sweep", "smoke"}, "'smoke' belongs to no option"},
    {"missing value", {"--sweep", "--profile"}, NULL},
    {"missing value of a mode", {"--verify"}, NULL},
    {"value for a switch", {"--sweep=all"}, NULL},
    {"empty value", {"--sweep", "--filter="}, "--filter: its value (REGEX) is empty"},
    {"ambiguous prefix", {"--sweep", "--prof", "smoke"}, NULL},
    {"sweep and list", {"--sweep", "--list"}, "--sweep and --list"},
    {"oracle and apply", {"--oracle", "a.npy", "--apply", "exact"}, "--oracle and --apply"},
    {"verify and sweep", {"--verify", "r.json", "--sweep"}, "--verify and --sweep"},
    {"variants and bench", {"--variants", "--bench-oracle"}, "--variants and --bench-oracle"},
    {"case and oracle", {"--case", "x", "--oracle", "a.npy", "--p", "1"}, "--case does not go"},
    {"p with sweep", {"--sweep", "--p", "0.9"}, "--p does not go with --sweep"},
    {"mask-out with apply", {"--apply", "exact", "--mask-out", "m.npy"}, "--mask-out does not go"},
    {"out with list", {"--list", "--out", "d"}, "--out does not go with --list"},
    {"resume with list", {"--list", "--resume"}, "--resume does not go with --list"},
    {"strict with sweep", {"--sweep", "--strict"}, "--strict does not go with --sweep"},
    {"input with oracle", {"--oracle", "a", "--p", "1", "--input", "b"}, "--input does not go"},
    {"device with oracle", {"--oracle", "a", "--p", "1", "--device", "cpu"}, "--device does not"},
    {"benchmark flag with list",
     {"--list", "--benchmark_format=json"},
     "--benchmark_format does not go with --list"},
    {"benchmark flag in two words", {"--sweep", "--benchmark_out", "x"}, "in one word"},
    {"benchmark file -", {"--sweep", "--benchmark_out=-"}, "name a FILE (./-"},
    {"out -", {"--apply", "exact", "--out", "-"}, "--out: no standard input or output here"},
    {"file -", {"--oracle", "-"}, "name a FILE.npy (./-"},
    {"benchmark format", {"--sweep", "--benchmark_format=xml"}, "json|csv"},
    {"benchmark unit", {"--sweep", "--benchmark_time_unit=1"}, "ns|us|ms|s"},
    {"benchmark filter", {"--sweep", "--benchmark_filter=x"}, NULL},
    {"oracle without p", {"--oracle", "a.npy"}, "--oracle needs --p"},
    {"apply without input", {"--apply", "exact", "--p", "1", "--out", "o"}, "needs --input"},
    {"apply without p", {"--apply", "exact", "--input", "i", "--out", "o"}, "needs --p"},
    {"apply without out", {"--apply", "exact", "--input", "i", "--p", "1"}, "needs --out"},
    {"apply with two p",
     {"--apply", "exact", "--input", "i", "--p", "0.5,0.9", "--out", "o"},
     "--apply takes one --p"},
    {"mask-out with two p",
     {"--oracle", "a.npy", "--p", "0.5,0.9", "--mask-out", "o"},
     "--mask-out takes one --p"},
    {"case and filter", {"--sweep", "--case", "a", "--filter", "b"}, "--case and --filter"},
    {"resume and force", {"--sweep", "--resume", "--force"}, "--resume keeps"},
    {"timer without timing", {"--sweep", "--gate-only", "--timer", "events"}, "--gate-only"},
    {"timer of the CPU", {"--sweep", "--device", "cpu", "--timer", "events"}, "--timer chooses"},
    {"bfloat16 without file", {"--sweep", "--bfloat16"}, "--bfloat16 says how to read"},
    {"p zero", {"--oracle", "a", "--p", "0"}, "--p: '0' is not"},
    {"p negative", {"--oracle", "a", "--p", "-0.5"}, "--p: '-0.5' is not"},
    {"p nan", {"--oracle", "a", "--p", "nan"}, "--p: 'nan' is not"},
    {"p inf", {"--oracle", "a", "--p", "inf"}, "--p: 'inf' is not"},
    {"p that rounds to zero", {"--oracle", "a", "--p", "1e-60"}, "--p: '1e-60' is not"},
    {"p word", {"--oracle", "a", "--p", "0.9x"}, "--p: '0.9x' is not"},
    {"p list with a hole", {"--oracle", "a", "--p", "0.5,,0.9"}, "--p: '0.5,,0.9' is not"},
    {"p list with an end", {"--oracle", "a", "--p", "0.5,"}, "--p: '0.5,' is not"},
    {"device", {"--sweep", "--device", "gpu"}, "--device: 'gpu' is not cpu|cuda|auto"},
    {"device prefix", {"--sweep", "--device", "cp"}, "--device: 'cp' is not"},
    {"timer", {"--sweep", "--timer", "clock"}, "--timer: 'clock' is not cupti|events"},
    {"seed word", {"--sweep", "--seed", "x"}, "--seed: 'x' is not a whole number"},
    {"seed with rest", {"--sweep", "--seed", "1.5"}, "--seed: '1.5' is not"},
    {"seed too great", {"--sweep", "--seed", "9223372036854775808"}, "--seed:"},
    {"ab without B", {"--ab", "exact"}, "--ab needs two kernels"},
    {"ab with three", {"--ab", "exact", "sort", "stock"}, "'stock' belongs to no option"},
    {"ab and sweep", {"--sweep", "--ab", "exact", "sort"}, "--sweep and --ab"},
    {"odd blocks", {"--ab", "exact", "sort", "--blocks", "7"}, "--blocks: an even number"},
    {"margin of unclear meaning", {"--ab", "exact", "sort", "--margin", "5"}, "could mean 5%"},
    {"margin word", {"--ab", "exact", "sort", "--margin", "x"}, "--margin: 'x' is no share"},
    {"margin with sweep", {"--sweep", "--margin", "5%"}, "--margin does not go with --sweep"},
    {"gate-only with ab", {"--ab", "exact", "sort", "--gate-only"}, "--gate-only does not go"},
    {"slices zero", {"--sweep", "--slices", "0"}, "--slices: '0' is not"},
    {"slices too many", {"--sweep", "--slices", "33"}, "--slices: '33' is not"},
    {"shard zero", {"--sweep", "--shard", "0/3"}, "--shard: '0/3' is not K/N"},
    {"shard past all", {"--sweep", "--shard", "4/3"}, "--shard: '4/3' is not K/N"},
    {"shard alone", {"--sweep", "--shard", "2"}, "--shard: '2' is not K/N"},
    {"shard without count", {"--sweep", "--shard", "2/"}, "--shard: '2/' is not K/N"},
    {"shard with rest", {"--sweep", "--shard", "2/3x"}, "--shard: '2/3x' is not K/N"},
    {"shard with sign", {"--sweep", "--shard", "+2/3"}, "--shard: '+2/3' is not K/N"},
    {"shard with sign of all", {"--sweep", "--shard", "2/+3"}, "--shard: '2/+3' is not K/N"},
    {"too many shards", {"--sweep", "--shard", "1/100001"}, "--shard: '1/100001' is not"},
    {"devices word", {"--sweep", "--devices", "x"}, "--devices: 'x' is not all, or a list"},
    {"input twice", {"--sweep", "--input", "a.npy", "--input", "b.npy"}, "--input stands twice"},
    {"devices twice", {"--sweep", "--devices", "1,1"}, "--devices: '1,1' is not"},
    {"devices with a hole", {"--sweep", "--devices", "0,,1"}, "--devices: '0,,1' is not"},
    {"devices with shard", {"--sweep", "--devices", "0,1", "--shard", "1/2"}, "--devices cuts"},
    {"all devices with shard", {"--sweep", "--shard", "1/2", "--devices", "all"}, "--devices cuts"},
    {"devices with a flag",
     {"--sweep", "--devices", "0,1", "--benchmark_format=json"},
     "benchmark.json"},
    {"cost with sweep", {"--sweep", "--cost"}, "--cost does not go with --sweep"},
    {"cache with list", {"--list", "--oracle-cache", "d"}, "--oracle-cache does not go"},
    {"threads zero", {"--sweep", "--threads", "0"}, "--threads: '0' is not"},
};

static enum tb_status parse(const struct line *line, struct options *options,
                            struct tb_error *error) {
    char *words[MOST_WORDS + 2] = {(char *)"bench_topp"};
    int count = 1;
    while (count <= MOST_WORDS && line->words[count - 1]) {
        words[count] = (char *)line->words[count - 1];
        count++;
    }
    *error = (struct tb_error)TB_ERROR_INIT;
    return options_parse(count, words, options, error);
}

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct options options;
        struct tb_error error;
        enum tb_status status = parse(&refused[i], &options, &error);
        if (status != TB_USAGE)
            fail_msg("%s: was taken", refused[i].name);
        if (!refused[i].says && error.code != TB_OK)
            fail_msg("%s: says '%s' where argp should have", refused[i].name, error.message);
        if (refused[i].says && !strstr(error.message, refused[i].says))
            fail_msg("%s: says '%s'", refused[i].name, error.message);
    }
}

/* Every long option with a dash is known to the message that refuses it. */
static void test_wrong_mode_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &options_rows[i];
        if (!row->name || row->opens != MODE_NONE || (row->modes & (1u << MODE_VARIANTS)))
            continue;
        char word[96];
        const char *first = row->argument; /* of the alternatives a|b|c */
        if (first && strchr(first, '|') && !strstr(first, "NAME") && !strstr(first, "DIR"))
            snprintf(word, sizeof word, "--%s=%.*s", row->name, (int)strcspn(first, "|"), first);
        else
            snprintf(word, sizeof word,
                     row->key == KEY_SHARD ? "--%s=1/1"
                     : first               ? "--%s=1"
                                           : "--%s",
                     row->name);
        const struct line line = {"", {"--variants", word}, NULL};
        struct options options;
        struct tb_error error;
        assert_int_equal(parse(&line, &options, &error), TB_USAGE);
        char says[96];
        snprintf(says, sizeof says, "--%s does not go with --variants", row->name);
        if (!strstr(error.message, says))
            fail_msg("--%s: says '%s'", row->name, error.message);
    }
}

static void take(const struct line *line, struct options *options) {
    struct tb_error error;
    if (parse(line, options, &error) != TB_OK)
        fail_msg("%s: refused: %s", line->name, error.message);
}

static void test_taken(void **state) {
    (void)state;
    struct options o;
    take(&(struct line){"sweep",
                        {"--sweep", "--profile", "smoke", "--out=d", "--seed", "-7", "--slices",
                         "4", "--device", "cuda", "--timer=events", "--resume"},
                        NULL},
         &o);
    assert_int_equal(o.mode, MODE_SWEEP);
    assert_string_equal(o.profile, "smoke");
    assert_string_equal(o.out, "d");
    assert_true(o.have_seed && o.seed == -7 && o.slices == 4 && o.resume);
    assert_true(o.device == CHOOSE_CUDA && o.timer == TIMER_EVENTS);
    take(&(struct line){"case", {"--case", "topp/exact"}, NULL}, &o);
    assert_int_equal(o.mode, MODE_SWEEP);
    take(&(struct line){"p", {"--oracle", "f.npy", "--p", "0.5,0.9,1,2"}, NULL}, &o);
    assert_int_equal(o.p_count, 4);
    assert_true(o.p[1] == 0.9f && o.p[3] == 2.0f);
    assert_string_equal(o.subject, "f.npy");
    take(&(struct line){"apply",
                        {"--apply", "exact", "--input", "i", "--out", "o", "--p", "1e-6",
                         "--bfloat16"},
                        NULL},
         &o);
    assert_true(o.bfloat16 && o.p[0] == 1e-6f);
    assert_string_equal(o.subject, "exact");
    take(&(struct line){"flags", {"--sweep", "--benchmark_format=json", "--benchmark_out=x"}, NULL},
         &o);
    assert_int_equal(o.passed_count, 2);
    assert_string_equal(o.passed[0], "--benchmark_format=json");
    take(&(struct line){"help wins", {"--sweep", "--help", "--list"}, NULL}, &o);
    assert_int_equal(o.mode, MODE_HELP);
    take(&(struct line){"ab", {"--ab", "exact", "--strict", "sort", "--margin=5%"}, NULL}, &o);
    assert_true(o.mode == MODE_AB && o.strict && !o.blocks);
    assert_string_equal(o.subject, "exact");
    assert_string_equal(o.against, "sort");
    take(&(struct line){"verify", {"--verify", "r.json", "--strict"}, NULL}, &o);
    assert_true(o.mode == MODE_VERIFY && o.strict);
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        assert_non_null(options_rows[i].help);
        for (size_t j = 0; options_rows[i].name && j < i; j++) {
            if (!options_rows[j].name)
                continue;
            assert_string_not_equal(options_rows[i].name, options_rows[j].name);
            assert_int_not_equal(options_rows[i].key, options_rows[j].key);
        }
    }
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_in_range(fread(text, 1, (1 << 16) - 1, file), 1, (1 << 16) - 2);
    fclose(file);
    return text;
}

static bool is_name_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '_';
}

static bool known_option(const char *name, size_t length) {
    for (size_t i = 0; i < OPTION_ROWS; i++)
        if (options_rows[i].name && strlen(options_rows[i].name) == length &&
            !memcmp(options_rows[i].name, name, length))
            return true;
    return false;
}

/* Both ways: every option stands in the docs, and the docs name no other. */
static void test_docs(void **state) {
    (void)state;
    char *text = read_text(TOPP_SOURCE_DIR "/docs/cli.md");
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &options_rows[i];
        if (!row->name)
            continue;
        char word[128];
        snprintf(word, sizeof word, "`--%s", row->name);
        const size_t length = strlen(word);
        bool found = false;
        for (const char *at = strstr(text, word); at && !found; at = strstr(at + 1, word))
            found = !is_name_letter(at[length]);
        if (!found)
            fail_msg("docs/cli.md does not list --%s", row->name);
    }
    for (const char *at = strstr(text, "`--"); at; at = strstr(at + 1, "`--")) {
        size_t length = 0;
        while (is_name_letter(at[3 + length]))
            length++;
        /* --NAME=VALUE stands for any flag of Google Benchmark. */
        if (length && !known_option(at + 3, length))
            fail_msg("docs/cli.md lists --%.*s, which is no option", (int)length, at + 3);
    }
    free(text);
}

static void test_help_lists_all(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    options_print_help(stream, "bench_topp", true);
    fclose(stream);
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        char word[128];
        snprintf(word, sizeof word, "--%s", options_rows[i].name ? options_rows[i].name : "");
        if (!strstr(text, word))
            fail_msg("--help does not list %s", word);
    }
    static const char *const codes[] = {"\n  0 ", "\n  1 ", "\n  2 ", "\n  3 ", "\n  4 "};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        assert_non_null(strstr(text, codes[i]));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_wrong_mode_is_named),
        cmocka_unit_test(test_taken),   cmocka_unit_test(test_table),
        cmocka_unit_test(test_docs),    cmocka_unit_test(test_help_lists_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
