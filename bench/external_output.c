/* How a start of another program ended, and what it left. */
#include "bench/external_start.h"

#include "bench/npy_array.h"

#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 160 };

void external_keep_log(const struct external_start *start) {
    char path[4300], block[4096];
    snprintf(path, sizeof path, "%s/external-%s.log", start->state->run->out_dir,
             start->external->name);
    FILE *from = process_open_file(start->path[FILE_LOG]), *to = fopen(path, "we");
    for (size_t left = 1 << 20, got; from && to && left > 0; left -= got) {
        got = fread(block, 1, sizeof block < left ? sizeof block : left, from);
        if (got == 0 || fwrite(block, 1, got, to) != got)
            break;
    }
    if (from)
        fclose(from);
    if (to)
        fclose(to);
}

static bool refuse(const struct external_start *start, enum gate_verdict verdict, const char *rule,
                   const char *what) {
    external_keep_log(start);
    record_refuse(start->record, verdict, rule, start->draw, -1, -1, "%s", what);
    return false;
}

/* Did it come to its end? */
bool external_ended_well(const struct external_start *start, const struct process_result *result) {
    char last[LINE_BYTES], what[RECORD_REASON_BYTES];
    process_last_line(start->path[FILE_LOG], last, sizeof last);
    if (result->timed_out) {
        snprintf(what, sizeof what, "the program ran past the profile's %g seconds",
                 start->state->plan->limits.case_seconds);
        return refuse(start, GATE_TIMEOUT, "timeout", what);
    }
    if (result->signal) {
        snprintf(what, sizeof what, "the program was ended by signal %d (%s)", result->signal,
                 strsignal(result->signal));
        return refuse(start, GATE_REJECTED, "signal", what);
    }
    if (result->exit_code == 0)
        return true;
    snprintf(what, sizeof what, "%s%s%s",
             last[0] ? last : "the program said nothing on standard error", "", "");
    if (result->exit_code == EXTERNAL_ABSENT) {
        snprintf(external_absent(start), RECORD_REASON_BYTES, "%s", what);
        return refuse(start, GATE_UNSUPPORTED, "absent", what);
    }
    if (result->exit_code == EXTERNAL_PAST_LIMITS)
        return refuse(start, GATE_UNSUPPORTED, "", what);
    snprintf(what, sizeof what, "exit code %d: %s", result->exit_code,
             last[0] ? last : "nothing on standard error");
    return refuse(start, GATE_REJECTED, "exit_code", what);
}

/* Are type and shape as asked for? */
static bool right_array(const struct external_start *start, const char *path, const char *descr,
                        const int64_t shape[2], struct npy_claim *claim) {
    struct tb_error error = TB_ERROR_INIT;
    char is[80], wanted[80], what[RECORD_REASON_BYTES], text[200];
    struct npy_claim want = {.dimensions = 2, .shape = {shape[0], shape[1]}};
    snprintf(want.descr, sizeof want.descr, "%s", descr);
    if (access(path, F_OK) != 0)
        return refuse(start, GATE_REJECTED, "no_output",
                      "the program ended well and left no file where --out says");
    FILE *file = process_open_file(path);
    if (!file)
        return refuse(start, GATE_REJECTED, "unreadable_output", "its output is no ordinary file");
    fclose(file);
    if (npy_claim_read(path, claim, &error) != TB_OK) {
        snprintf(what, sizeof what, "its output: %s", tb_error_text(&error, text, sizeof text));
        return refuse(start, GATE_REJECTED, "unreadable_output", what);
    }
    npy_claim_text(claim, is, sizeof is);
    npy_claim_text(&want, wanted, sizeof wanted);
    snprintf(what, sizeof what, "its output is %s, wanted %s", is, wanted);
    if (strcmp(claim->descr, descr) != 0)
        return refuse(start, GATE_REJECTED, "wrong_dtype", what);
    if (claim->dimensions != 2 || claim->shape[0] != shape[0] || claim->shape[1] != shape[1])
        return refuse(start, GATE_REJECTED, "wrong_shape", what);
    return true;
}

static bool read_matrix(const struct external_start *start, enum external_file file,
                        struct logits *out) {
    const struct cell *cell = start->record->cell;
    const int64_t shape[2] = {cell->batch, cell->vocab};
    struct npy_claim claim;
    struct tb_error error = TB_ERROR_INIT;
    char text[200], what[RECORD_REASON_BYTES];
    if (!right_array(start, start->path[file], "<f4", shape, &claim))
        return false;
    if (npy_read(start->path[file], false, out, &error) == TB_OK)
        return true;
    snprintf(what, sizeof what, "its output: %s", tb_error_text(&error, text, sizeof text));
    return refuse(start, GATE_REJECTED, "unreadable_output", what);
}

/* The program's rows in place of a kernel's buffer: the padding is as it was. */
static void place_rows(const struct logits *from, const struct logits *input, float *output) {
    for (int64_t row = 0; row < input->batch; row++) {
        memcpy(output + row * input->stride, input->data + row * input->stride,
               (size_t)input->stride * sizeof *output);
        memcpy(output + row * input->stride, from->data + row * from->stride,
               (size_t)from->vocab * sizeof *output);
    }
}

bool external_take_rows(const struct external_start *start, const struct logits *input,
                        float *output) {
    struct logits out = {0}, last = {0};
    bool good = read_matrix(start, FILE_OUT, &out);
    if (good && start->repeats && access(start->path[FILE_LAST], F_OK) == 0) {
        good = read_matrix(start, FILE_LAST, &last);
        if (good && memcmp(out.data, last.data,
                           (size_t)out.batch * (size_t)out.vocab * sizeof *out.data) != 0)
            good = refuse(start, GATE_DRIFT, "drift",
                          "the last timed repetition left another output than the first call");
    }
    if (good)
        place_rows(&out, input, output);
    logits_free(&out);
    logits_free(&last);
    return good;
}

bool external_take_ids(const struct external_start *start, int64_t *ids) {
    const int64_t batch = start->record->cell->batch, shape[2] = {start->launches, batch};
    struct npy_claim claim;
    struct tb_error error = TB_ERROR_INIT;
    char text[200], what[RECORD_REASON_BYTES];
    if (!right_array(start, start->path[FILE_OUT], "<i8", shape, &claim))
        return false;
    if (npy_read_int64(start->path[FILE_OUT], &claim, ids, (size_t)(start->launches * batch),
                       &error) == TB_OK)
        return true;
    snprintf(what, sizeof what, "its output: %s", tb_error_text(&error, text, sizeof text));
    return refuse(start, GATE_REJECTED, "unreadable_output", what);
}
