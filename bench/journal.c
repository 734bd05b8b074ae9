#include "bench/journal.h"

#include "bench/journal_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct journal {
    char folder[JOURNAL_PATH_BYTES - 64], path[JOURNAL_PATH_BYTES];
    int lock, file;
    int64_t bytes;     /* of the journal: always ends with a whole line */
    int64_t published; /* bytes of finished files */
    int64_t most_bytes;
    time_t synced;
    bool resumed;
    json_t *header, *lines;
};

static enum tb_status io_error(struct tb_error *error, const char *path, const char *what) {
    int code = errno;
    return tb_fail_at(error, TB_IO, path, 0, -1, "%s: %s", what, strerror(code));
}

/* mkdir -p. */
static enum tb_status make_folder(const char *folder, struct tb_error *error) {
    char path[JOURNAL_PATH_BYTES];
    if ((size_t)snprintf(path, sizeof path, "%s", folder) >= sizeof path - 64 || !folder[0])
        return tb_fail_at(error, TB_USAGE, folder, 0, -1, "not a usable folder name");
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char saved = *at;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return io_error(error, path, "cannot make the output folder");
        *at = saved;
        if (saved == '\0')
            break;
    }
    struct stat status;
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
        return tb_fail_at(error, TB_IO, folder, 0, -1, "the output is not a folder");
    return TB_OK;
}

static enum tb_status take_lock(struct journal *journal, struct tb_error *error) {
    char path[JOURNAL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/.lock", journal->folder);
    journal->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (journal->lock < 0)
        return io_error(error, path, "cannot write into the output folder");
    if (flock(journal->lock, LOCK_EX | LOCK_NB) == 0)
        return TB_OK;
    if (errno != EWOULDBLOCK)
        return io_error(error, path, "cannot lock the output folder");
    return tb_fail_at(error, TB_USAGE, journal->folder, 0, -1,
                      "another run is writing here: give this one a folder of its own (--out)");
}

static bool binding_differs(const struct journal_options *options, const json_t *found, char *text,
                            size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; options->binding && options->binding[i]; i++) {
        const char *name = options->binding[i];
        const json_t *has = json_object_get(found, name);
        const json_t *asked = json_object_get(options->header, name);
        if (has == asked || json_equal(has, asked)) /* the same, or in neither */
            continue;
        int length = snprintf(text + used, text_bytes - used, "%s%s", used ? ", " : "", name);
        if (length > 0 && used + (size_t)length < text_bytes)
            used += (size_t)length;
    }
    return text[0] != '\0';
}

/* May what stands in the folder be continued or replaced? */
static enum tb_status check_predecessor(struct journal *journal,
                                        const struct journal_options *options,
                                        struct tb_error *error) {
    struct journal_text text;
    enum tb_status status = journal_read(journal->path, &text, error);
    if (status != TB_OK && !options->resume && options->force) {
        if (error)
            *error = (struct tb_error)TB_ERROR_INIT;
        return TB_OK;
    }
    if (status != TB_OK || !text.header)
        return status;
    char names[256];
    bool differs = binding_differs(options, text.header, names, sizeof names);
    if (options->resume && !differs) {
        journal->resumed = true;
        journal->header = text.header;
        journal->lines = text.lines;
        journal->bytes = text.whole_bytes;
        return TB_OK;
    }
    bool finished = text.finished;
    json_decref(text.header);
    json_decref(text.lines);
    if (options->resume)
        return tb_fail_at(error, TB_UNREADABLE, journal->path, 1, -1,
                          "cannot resume: this journal is of another run (different: %s); run "
                          "with what it was made with, or without --resume into a new folder",
                          names);
    if (options->force)
        return TB_OK;
    if (!finished && differs)
        return tb_fail_at(error, TB_USAGE, journal->folder, 0, -1,
                          "holds an interrupted run of something else (different: %s): --out DIR "
                          "leaves it alone, --force replaces it",
                          names);
    if (!finished)
        return tb_fail_at(error, TB_USAGE, journal->folder, 0, -1,
                          "holds an interrupted run: --resume goes on with it, --force starts "
                          "afresh, --out DIR leaves it alone");
    if (differs)
        return tb_fail_at(error, TB_USAGE, journal->folder, 0, -1,
                          "holds results of another run (different: %s): give a new folder with "
                          "--out, or --force to replace them",
                          names);
    return TB_OK;
}

static enum tb_status start_journal(struct journal *journal, const struct journal_options *options,
                                    struct tb_error *error) {
    journal->file = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (journal->file < 0)
        return io_error(error, journal->path, "cannot write the journal");
    /* Resumed: cut a torn last line. Else: start afresh; results stay until replaced by rename. */
    if (ftruncate(journal->file, journal->bytes) != 0 ||
        lseek(journal->file, journal->bytes, SEEK_SET) < 0)
        return io_error(error, journal->path, "cannot write the journal");
    if (journal->resumed)
        return TB_OK;
    journal->header = json_deep_copy(options->header);
    journal->lines = json_array();
    return journal_append(journal, json_deep_copy(options->header), error);
}

enum tb_status journal_open(const struct journal_options *options, struct journal **journal,
                            struct tb_error *error) {
    *journal = NULL;
    enum tb_status status = make_folder(options->folder, error);
    if (status != TB_OK)
        return status;
    struct journal *made = calloc(1, sizeof *made);
    if (!made)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the journal");
    made->lock = made->file = -1;
    made->most_bytes = options->most_bytes;
    snprintf(made->folder, sizeof made->folder, "%s", options->folder);
    snprintf(made->path, sizeof made->path, "%s/journal.jsonl", made->folder);
    status = take_lock(made, error);
    if (status == TB_OK)
        status = check_predecessor(made, options, error);
    if (status == TB_OK)
        status = start_journal(made, options, error);
    if (status != TB_OK) {
        journal_close(made);
        return status;
    }
    *journal = made;
    return TB_OK;
}

void journal_close(struct journal *journal) {
    if (!journal)
        return;
    if (journal->file >= 0) {
        fdatasync(journal->file);
        close(journal->file);
    }
    if (journal->lock >= 0)
        close(journal->lock);
    json_decref(journal->header);
    json_decref(journal->lines);
    free(journal);
}

bool journal_resumed(const struct journal *journal) {
    return journal->resumed;
}

const json_t *journal_header(const struct journal *journal) {
    return journal->header;
}

const json_t *journal_lines(const struct journal *journal) {
    return journal->lines;
}

/* The journal's file could be gone with its folder while its descriptor still works. */
static enum tb_status still_there(struct journal *journal, struct tb_error *error) {
    struct stat ours, named;
    if (fstat(journal->file, &ours) == 0 && stat(journal->path, &named) == 0 &&
        ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
        return TB_OK;
    return tb_fail_at(error, TB_IO, journal->path, 0, -1,
                      "the journal was removed while the run was writing it: nothing more can be "
                      "saved here");
}

static enum tb_status too_much(const struct journal *journal, const char *path,
                               struct tb_error *error) {
    return tb_fail_at(error, TB_IO, path, 0, -1,
                      "the run would write more than the profile's limit of %lld bytes "
                      "(limits.artifact_bytes)",
                      (long long)journal->most_bytes);
}

enum tb_status journal_append(struct journal *journal, json_t *line, struct tb_error *error) {
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(line);
    if (!text)
        return tb_fail(error, TB_NO_MEMORY,
                       "no memory for a line of the journal, or a name in it is not UTF-8");
    size_t length = strlen(text), written = 0;
    text[length++] = '\n'; /* in place of the terminator: written by length */
    enum tb_status status = still_there(journal, error);
    if (status == TB_OK && journal->most_bytes > 0 &&
        journal->bytes + journal->published + (int64_t)length > journal->most_bytes)
        status = too_much(journal, journal->path, error);
    while (status == TB_OK && written < length) {
        ssize_t put = write(journal->file, text + written, length - written);
        if (put > 0)
            written += (size_t)put;
        else if (put == 0 || errno != EINTR)
            status = io_error(error, journal->path,
                              "what was finished is kept, --resume goes on with it; the journal "
                              "cannot be written");
    }
    free(text);
    if (status != TB_OK) {
        if (written > 0 && ftruncate(journal->file, journal->bytes) == 0)
            lseek(journal->file, journal->bytes, SEEK_SET);
        return status;
    }
    journal->bytes += (int64_t)length;
    /* A killed process loses nothing that was written; for a power cut, once a second is enough. */
    time_t now = time(NULL);
    if (now != journal->synced) {
        journal->synced = now;
        if (fdatasync(journal->file) != 0 && errno != EINVAL)
            return io_error(error, journal->path, "cannot flush the journal to the disk");
    }
    return TB_OK;
}

static void temporary_path(const struct journal *journal, const char *name, char *path) {
    snprintf(path, JOURNAL_PATH_BYTES, "%s/.%s.partial", journal->folder, name);
}

enum tb_status journal_begin_file(struct journal *journal, const char *name, char *path,
                                  FILE **stream, struct tb_error *error) {
    temporary_path(journal, name, path);
    unlink(path);
    if (!stream)
        return TB_OK;
    *stream = fopen(path, "we");
    return *stream ? TB_OK : io_error(error, path, "cannot write");
}

enum tb_status journal_publish(struct journal *journal, const char *name, FILE *stream,
                               struct tb_error *error) {
    char from[JOURNAL_PATH_BYTES], to[JOURNAL_PATH_BYTES];
    temporary_path(journal, name, from);
    snprintf(to, sizeof to, "%s/%s", journal->folder, name);
    struct stat status = {0};
    errno = EIO; /* for a write that failed before, and left its cause nowhere */
    bool good = !stream || (fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0);
    if (stream && fclose(stream) != 0)
        good = false;
    good = good && stat(from, &status) == 0;
    if (good && journal->most_bytes > 0 &&
        journal->bytes + journal->published + (int64_t)status.st_size > journal->most_bytes) {
        unlink(from);
        return too_much(journal, to, error);
    }
    good = good && rename(from, to) == 0;
    if (!good) {
        enum tb_status failed = io_error(error, to, "cannot write");
        unlink(from);
        return failed;
    }
    journal->published += (int64_t)status.st_size;
    return TB_OK;
}

void journal_discard(struct journal *journal, const char *name, FILE *stream) {
    char path[JOURNAL_PATH_BYTES];
    if (stream)
        fclose(stream);
    temporary_path(journal, name, path);
    unlink(path);
}
