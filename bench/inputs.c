#include "bench/inputs.h"

#include "bench/generator.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 64, TOKENS_WORTH_THREADS = 1 << 16 };

static const float padding_poison = 3e38f;

void logits_free(struct logits *logits) {
    if (!logits)
        return;
    free(logits->data);
    memset(logits, 0, sizeof *logits);
}

enum tb_status logits_hash(struct logits *logits, struct tb_error *error) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    const size_t row_bytes = (size_t)logits->vocab * sizeof(float);
    if (logits->stride == logits->vocab)
        ok = ok && EVP_DigestUpdate(context, logits->data, (size_t)logits->batch * row_bytes);
    else
        for (int64_t r = 0; ok && r < logits->batch; r++)
            ok = EVP_DigestUpdate(context, logits->data + r * logits->stride, row_bytes);
    ok = ok && EVP_DigestFinal_ex(context, digest, &length) && length == 32;
    EVP_MD_CTX_free(context);
    if (!ok)
        return tb_fail(error, TB_INTERNAL, "SHA-256 of the input failed in libcrypto");
    for (unsigned int i = 0; i < length; i++)
        snprintf(logits->sha256 + 2 * i, 3, "%02x", digest[i]);
    return TB_OK;
}

struct row_job {
    const struct input_request *request;
    const struct logits *source; /* captured: rows of the file; else NULL */
    struct logits *out;
    atomic_llong next;
    atomic_bool no_memory;
};

static void make_row(const struct row_job *job, int64_t i, uint32_t *scratch) {
    const struct input_request *request = job->request;
    const struct logits *out = job->out;
    const int64_t row = request->first_row + i;
    float *to = out->data + i * out->stride;
    if (job->source)
        memcpy(to, job->source->data + row % job->source->batch * job->source->stride,
               (size_t)out->vocab * sizeof(float));
    else
        generator_row(request->family, to, out->vocab, row, request->seed, scratch);
    for (int64_t t = out->vocab; t < out->stride; t++)
        to[t] = padding_poison;
}

static void *row_worker(void *argument) {
    struct row_job *job = argument;
    uint32_t *scratch = malloc((size_t)job->out->vocab * sizeof *scratch);
    if (!scratch) {
        atomic_store(&job->no_memory, true);
        return NULL;
    }
    for (;;) {
        const long long i = atomic_fetch_add(&job->next, 1);
        if (i >= job->out->batch)
            break;
        make_row(job, i, scratch);
    }
    free(scratch);
    return NULL;
}

static int64_t processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The calling thread works too, so that a thread that cannot be started costs time alone. */
static enum tb_status make_rows(struct row_job *job, struct tb_error *error) {
    const struct logits *out = job->out;
    pthread_t threads[THREADS_MOST];
    int64_t wanted = processors(), started = 0;
    if (out->batch * out->vocab < TOKENS_WORTH_THREADS)
        wanted = 1;
    if (wanted > out->batch)
        wanted = out->batch;
    if (wanted > THREADS_MOST)
        wanted = THREADS_MOST;
    while (started < wanted - 1 && !pthread_create(&threads[started], NULL, row_worker, job))
        started++;
    row_worker(job);
    for (int64_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (atomic_load(&job->no_memory))
        return tb_fail(error, TB_NO_MEMORY, "no memory for the scratch rows of an input of %lld",
                       (long long)out->vocab);
    return TB_OK;
}

static enum tb_status check_request(const struct input_request *request, int64_t vocab,
                                    int64_t stride, struct tb_error *error) {
    const char *name = request->family->text;
    if (request->batch < 1 || vocab < 1 || vocab > INT32_MAX)
        return tb_fail(error, TB_USAGE,
                       "input %s of %lld x %lld: batch and vocab start at 1, "
                       "vocab ends at 2^31 - 1",
                       name, (long long)request->batch, (long long)vocab);
    if (stride < vocab)
        return tb_fail(error, TB_USAGE, "input %s: stride %lld is less than vocab %lld", name,
                       (long long)stride, (long long)vocab);
    if (request->first_row < 0 || request->batch > UINT32_MAX ||
        request->first_row > (int64_t)UINT32_MAX - request->batch)
        return tb_fail(error, TB_USAGE, "input %s: rows %lld to %lld: the generator has 2^32", name,
                       (long long)request->first_row,
                       (long long)request->first_row + (long long)request->batch);
    if (stride > INT64_MAX / 4 / request->batch)
        return tb_fail(error, TB_NO_MEMORY, "input %s of %lld x %lld fits no memory", name,
                       (long long)request->batch, (long long)stride);
    if (family_forced_token(request->family, vocab) >= vocab)
        return tb_fail(error, TB_USAGE, "input %s: token %lld is outside a vocabulary of %lld",
                       name, (long long)request->family->token, (long long)vocab);
    return TB_OK;
}

static enum tb_status read_captured(const struct input_request *request, struct logits *source,
                                    struct tb_error *error) {
    char path[512];
    if (!request->captured_dir)
        return tb_fail(error, TB_USAGE, "input %s: no folder of captured logits is given",
                       request->family->text);
    const int length =
        snprintf(path, sizeof path, "%s/%s.npy", request->captured_dir, request->family->file);
    if (length < 0 || (size_t)length >= sizeof path)
        return tb_fail_at(error, TB_USAGE, request->captured_dir, 0, -1,
                          "path of captured logits longer than %zu bytes", sizeof path - 1);
    enum tb_status status = npy_read(path, false, source, error);
    if (status == TB_OK && request->vocab && request->vocab != source->vocab)
        status = tb_fail_at(error, TB_USAGE, path, 0, -1,
                            "rows of %lld logits where a vocabulary of %lld was asked for",
                            (long long)source->vocab, (long long)request->vocab);
    return status;
}

enum tb_status input_make(const struct input_request *request, struct logits *out,
                          struct tb_error *error) {
    struct logits source = {0};
    enum tb_status status = TB_OK;
    memset(out, 0, sizeof *out);
    const bool captured = request->family->kind == FAMILY_CAPTURED;
    if (captured)
        status = read_captured(request, &source, error);
    if (status == TB_OK) {
        const int64_t vocab = captured ? source.vocab : request->vocab;
        const int64_t stride = request->stride ? request->stride : vocab;
        status = check_request(request, vocab, stride, error);
        out->batch = request->batch;
        out->vocab = vocab;
        out->stride = stride;
    }
    if (status == TB_OK) {
        out->data = malloc((size_t)out->batch * (size_t)out->stride * sizeof(float));
        if (!out->data)
            status = tb_fail(error, TB_NO_MEMORY, "no memory for an input of %lld x %lld logits",
                             (long long)out->batch, (long long)out->stride);
    }
    if (status == TB_OK) {
        struct row_job job = {.request = request, .source = captured ? &source : NULL, .out = out};
        status = make_rows(&job, error);
    }
    if (status == TB_OK)
        status = logits_hash(out, error);
    logits_free(&source);
    if (status != TB_OK)
        logits_free(out);
    return status;
}
