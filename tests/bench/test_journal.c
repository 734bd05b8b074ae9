/* The output folder: one run at a time, torn and damaged journals, what may be replaced, full and
 * vanished disks, files that appear whole or not at all. */
#include "bench/journal.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 256, TEXT_BYTES = 4096, NOBODY = 65534 };

static char folder[PATH_BYTES];

static const char *inside(const char *name) {
    static char paths[4][PATH_BYTES + 64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/topp-journal-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlink(inside(entry->d_name));
    if (directory)
        closedir(directory);
    rmdir(folder);
    return 0;
}

static void write_text(const char *name, const char *text) {
    FILE *file = fopen(inside(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void read_text(const char *name, char *text) {
    FILE *file = fopen(inside(name), "r");
    assert_non_null(file);
    text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
    fclose(file);
}

static bool exists(const char *name) {
    return access(inside(name), F_OK) == 0;
}

struct how {
    const char *profile;
    bool resume, force;
    int64_t most_bytes;
};

static enum tb_status open_as(const struct how *how, struct journal **journal,
                              struct tb_error *error) {
    static const char *const binding[] = {"schema", "profile", "seed", NULL};
    *error = (struct tb_error)TB_ERROR_INIT;
    json_t *header = json_pack("{s:s, s:s, s:i, s:s}", "schema", "topp-bench.journal/1", "profile",
                               how->profile, "seed", 42, "date", how->resume ? "later" : "first");
    const struct journal_options options = {.folder = folder,
                                            .header = header,
                                            .binding = binding,
                                            .resume = how->resume,
                                            .force = how->force,
                                            .most_bytes = how->most_bytes};
    const enum tb_status status = journal_open(&options, journal, error);
    json_decref(header);
    return status;
}

static void append(struct journal *journal, int number) {
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(journal_append(journal, json_pack("{s:i}", "n", number), &error), TB_OK);
}

/* A journal as a run leaves it. */
static void leave_journal(const char *profile, int lines, bool finished) {
    struct journal *journal;
    struct tb_error error;
    assert_int_equal(open_as(&(struct how){.profile = profile}, &journal, &error), TB_OK);
    for (int i = 0; i < lines; i++)
        append(journal, i);
    if (finished)
        assert_int_equal(journal_append(journal, json_pack("{s:b}", "end", 1), &error), TB_OK);
    journal_close(journal);
}

#define HEADER                                                                                     \
    "{\"schema\":\"topp-bench.journal/1\",\"profile\":\"a\",\"seed\":42,\"date\":\"first\"}\n"

static void test_resume_reads_back(void **state) {
    (void)state;
    struct journal *journal;
    struct tb_error error;
    char text[TEXT_BYTES];
    leave_journal("a", 3, false);
    read_text("journal.jsonl", text);
    assert_string_equal(text, HEADER "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n");
    assert_int_equal(open_as(&(struct how){.profile = "a", .resume = true}, &journal, &error),
                     TB_OK);
    assert_true(journal_resumed(journal));
    assert_string_equal(json_string_value(json_object_get(journal_header(journal), "date")),
                        "first");
    assert_int_equal(json_array_size(journal_lines(journal)), 3);
    append(journal, 3);
    journal_close(journal);
    read_text("journal.jsonl", text);
    assert_string_equal(text, HEADER "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
}

/* The bytes of a journal, and what --resume makes of them. */
static const struct {
    const char *name, *text;
    enum tb_status status;
    int64_t line;
    const char *rest; /* what the journal is cut to */
    bool resumed;
} damages[] = {
    {"torn last line", HEADER "{\"n\":0}\n{\"n\":", TB_OK, 0, HEADER "{\"n\":0}\n", true},
    {"last line whole but for its end", HEADER "{\"n\":0}", TB_OK, 0, HEADER, true},
    {"torn header", "{\"schema\":\"topp-be", TB_OK, 0, NULL, false},
    {"empty", "", TB_OK, 0, NULL, false},
    {"garbage in the middle", HEADER "{\"n\":0}\nnonsense\n{\"n\":1}\n", TB_UNREADABLE, 3, NULL,
     false},
    {"an array for a line", HEADER "[1]\n", TB_UNREADABLE, 2, NULL, false},
    {"NaN", HEADER "{\"n\":NaN}\n", TB_UNREADABLE, 2, NULL, false},
    {"a member twice", HEADER "{\"n\":1,\"n\":2}\n", TB_UNREADABLE, 2, NULL, false},
    {"of another program", "{\"schema\":\"other\"}\n", TB_UNREADABLE, 1, NULL, false},
};

static void test_damage(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct journal *journal;
        struct tb_error error;
        char text[TEXT_BYTES];
        print_message("  %s\n", damages[i].name);
        write_text("journal.jsonl", damages[i].text);
        assert_int_equal(open_as(&(struct how){.profile = "a", .resume = true}, &journal, &error),
                         damages[i].status);
        if (damages[i].status != TB_OK) {
            assert_null(journal);
            assert_int_equal(error.line, damages[i].line);
            assert_non_null(strstr(error.file, "journal.jsonl"));
            read_text("journal.jsonl", text); /* left for whoever wants to look */
            assert_string_equal(text, damages[i].text);
            assert_int_equal(
                open_as(&(struct how){.profile = "a", .force = true}, &journal, &error), TB_OK);
            assert_false(journal_resumed(journal));
        } else {
            assert_int_equal(journal_resumed(journal), damages[i].resumed);
            if (damages[i].rest) {
                read_text("journal.jsonl", text);
                assert_string_equal(text, damages[i].rest);
            }
        }
        journal_close(journal);
    }
}

/* What stands in the folder, what is asked for, and what comes of it. */
static const struct {
    const char *name;
    const char *before;
    bool finished;
    struct how how;
    enum tb_status status;
    const char *says;
} predecessors[] = {
    {"the same, finished", "a", true, {"a", false, false, 0}, TB_OK, NULL},
    {"another, finished", "b", true, {"a", false, false, 0}, TB_USAGE, "different: profile"},
    {"another, finished, force", "b", true, {"a", false, true, 0}, TB_OK, NULL},
    {"interrupted", "a", false, {"a", false, false, 0}, TB_USAGE, "--resume"},
    {"interrupted, force", "a", false, {"a", false, true, 0}, TB_OK, NULL},
    {"interrupted, resume", "a", false, {"a", true, false, 0}, TB_OK, NULL},
    {"resume of another", "b", false, {"a", true, false, 0}, TB_UNREADABLE, "different: profile"},
    {"resume of another, force", "b", false, {"a", true, true, 0}, TB_UNREADABLE, "profile"},
};

static void test_predecessors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof predecessors / sizeof predecessors[0]; i++) {
        struct journal *journal;
        struct tb_error error;
        char text[TEXT_BYTES];
        print_message("  %s\n", predecessors[i].name);
        unlink(inside("journal.jsonl"));
        leave_journal(predecessors[i].before, 2, predecessors[i].finished);
        write_text("results.json", "old results");
        assert_int_equal(open_as(&predecessors[i].how, &journal, &error), predecessors[i].status);
        if (predecessors[i].says)
            assert_non_null(strstr(error.message, predecessors[i].says));
        journal_close(journal);
        read_text("results.json", text); /* never touched before a new one is whole */
        assert_string_equal(text, "old results");
    }
}

static void test_second_run_is_refused(void **state) {
    (void)state;
    struct journal *first, *second;
    struct tb_error error;
    assert_int_equal(open_as(&(struct how){.profile = "a"}, &first, &error), TB_OK);
    append(first, 0);
    const struct how ways[] = {
        {.profile = "a"}, {.profile = "a", .force = true}, {.profile = "a", .resume = true}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(open_as(&ways[i], &second, &error), TB_USAGE);
        assert_non_null(strstr(error.message, "another run"));
    }
    append(first, 1);
    journal_close(first);
    assert_int_equal(open_as(&(struct how){.profile = "a", .resume = true}, &second, &error),
                     TB_OK);
    assert_int_equal(json_array_size(journal_lines(second)), 2);
    journal_close(second);
}

static void test_unusable_folders(void **state) {
    (void)state;
    char saved[PATH_BYTES];
    struct journal *journal;
    struct tb_error error;
    memcpy(saved, folder, sizeof saved);
    write_text("file", "");
    const char *const bad[] = {"file", "file/below", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(folder, sizeof folder, "%.200s%s%s", bad[i][0] ? saved : "", bad[i][0] ? "/" : "",
                 bad[i]);
        const enum tb_status status = open_as(&(struct how){.profile = "a"}, &journal, &error);
        assert_true(status == TB_IO || status == TB_USAGE);
        assert_int_equal(tb_exit_code(status), 2);
        assert_true(error.message[0] != '\0');
        memcpy(folder, saved, sizeof folder);
    }
    /* Root writes into anything: be somebody else for a moment. */
    chmod(folder, 0555);
    const bool root = geteuid() == 0;
    if (root)
        assert_int_equal(seteuid(NOBODY), 0);
    const enum tb_status status = open_as(&(struct how){.profile = "a"}, &journal, &error);
    if (root)
        assert_int_equal(seteuid(0), 0);
    chmod(folder, 0755);
    assert_int_equal(status, TB_IO);
    assert_non_null(strstr(error.message, "Permission denied"));
}

static void test_parents_are_made(void **state) {
    (void)state;
    char saved[PATH_BYTES];
    struct journal *journal;
    struct tb_error error;
    memcpy(saved, folder, sizeof saved);
    snprintf(folder, sizeof folder, "%.200s/a/b/", saved);
    assert_int_equal(open_as(&(struct how){.profile = "a"}, &journal, &error), TB_OK);
    journal_close(journal);
    remove_folder(NULL);
    memcpy(folder, saved, sizeof folder);
    rmdir(inside("a"));
}

static void test_folder_removed_meanwhile(void **state) {
    (void)state;
    struct journal *journal;
    struct tb_error error;
    assert_int_equal(open_as(&(struct how){.profile = "a"}, &journal, &error), TB_OK);
    append(journal, 0);
    remove_folder(NULL);
    assert_int_equal(journal_append(journal, json_pack("{s:i}", "n", 1), &error), TB_IO);
    assert_non_null(strstr(error.message, "removed"));
    journal_close(journal);
}

static void test_full_disk(void **state) {
    (void)state;
    struct journal *journal;
    struct tb_error error;
    struct rlimit before, small;
    char text[TEXT_BYTES], wanted[TEXT_BYTES];
    leave_journal("a", 2, false);
    read_text("journal.jsonl", wanted);
    assert_int_equal(open_as(&(struct how){.profile = "a", .resume = true}, &journal, &error),
                     TB_OK);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = strlen(wanted) + 4; /* half a line fits */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const enum tb_status status = journal_append(journal, json_pack("{s:i}", "n", 2), &error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, TB_IO);
    assert_non_null(strstr(error.file, "journal.jsonl"));
    read_text("journal.jsonl", text); /* no torn line is left */
    assert_string_equal(text, wanted);
    append(journal, 2); /* room again */
    journal_close(journal);
    read_text("journal.jsonl", text);
    assert_string_equal(text + strlen(wanted), "{\"n\":2}\n");
}

static void test_limit_of_artifacts(void **state) {
    (void)state;
    struct journal *journal;
    struct tb_error error;
    char path[JOURNAL_PATH_BYTES];
    FILE *stream;
    assert_int_equal(open_as(&(struct how){.profile = "a", .most_bytes = 200}, &journal, &error),
                     TB_OK);
    append(journal, 0);
    assert_int_equal(journal_begin_file(journal, "big", path, &stream, &error), TB_OK);
    fprintf(stream, "%150s", "");
    assert_int_equal(journal_publish(journal, "big", stream, &error), TB_IO);
    assert_non_null(strstr(error.message, "artifact_bytes"));
    assert_false(exists("big"));
    assert_false(exists(".big.partial"));
    error = (struct tb_error)TB_ERROR_INIT;
    enum tb_status status = TB_OK;
    for (int i = 0; i < 40 && status == TB_OK; i++)
        status = journal_append(journal, json_pack("{s:i}", "n", i), &error);
    assert_int_equal(status, TB_IO);
    assert_non_null(strstr(error.message, "artifact_bytes"));
    journal_close(journal);
}

static void test_files_are_whole_or_absent(void **state) {
    (void)state;
    struct journal *journal;
    struct tb_error error;
    char path[JOURNAL_PATH_BYTES], text[TEXT_BYTES];
    FILE *stream;
    write_text("results.json", "old");
    assert_int_equal(open_as(&(struct how){.profile = "a"}, &journal, &error), TB_OK);
    assert_int_equal(journal_begin_file(journal, "results.json", path, &stream, &error), TB_OK);
    fputs("half", stream);
    fflush(stream);
    read_text("results.json", text);
    assert_string_equal(text, "old");
    journal_discard(journal, "results.json", stream);
    assert_int_not_equal(access(path, F_OK), 0);
    read_text("results.json", text);
    assert_string_equal(text, "old");
    assert_int_equal(journal_begin_file(journal, "results.json", path, &stream, &error), TB_OK);
    fputs("new", stream);
    assert_int_equal(journal_publish(journal, "results.json", stream, &error), TB_OK);
    read_text("results.json", text);
    assert_string_equal(text, "new");
    /* A name alone, as a library that writes the file itself needs it. */
    assert_int_equal(journal_begin_file(journal, "other", path, NULL, &error), TB_OK);
    assert_int_equal(journal_publish(journal, "other", NULL, &error), TB_IO);
    journal_close(journal);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_resume_reads_back),
        IN_FOLDER(test_damage),
        IN_FOLDER(test_predecessors),
        IN_FOLDER(test_second_run_is_refused),
        IN_FOLDER(test_unusable_folders),
        IN_FOLDER(test_parents_are_made),
        IN_FOLDER(test_folder_removed_meanwhile),
        IN_FOLDER(test_full_disk),
        IN_FOLDER(test_limit_of_artifacts),
        IN_FOLDER(test_files_are_whole_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
