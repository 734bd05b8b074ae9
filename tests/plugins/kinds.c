/* All kinds of output from one plug-in, right and wrong, and a Gumbel variant of the repository
 * under another name. */
#include "honest.h"

#include "kernels/cpu/variants.h"

/* splitmix64 of (seed, position): independent draws for any two positions. */
static double uniform_of(int64_t seed, int64_t position) {
    uint64_t z = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)position;
    for (int i = 0; i < 2; i++) {
        z += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
    }
    return (double)(z >> 11) * 0x1p-53;
}

/* Renormalises over the nucleus and `surplus` tokens more; error: relative, of the second token. */
static int soften(const struct topp_problem *problem, void *workspace, double error, double scale) {
    struct honest_token *tokens = workspace;
    for (int64_t i = 0; i < problem->batch; i++) {
        float *row = problem->logits + i * problem->stride;
        const int64_t n = honest_cut(row, problem->vocab, problem->p[i], tokens);
        double mass = 0.0;
        for (int64_t k = 0; k < n; k++)
            mass += exp((double)tokens[k].logit - (double)tokens[0].logit);
        for (int64_t k = 0; k < problem->vocab; k++)
            row[tokens[k].id] =
                k < n ? (float)(exp((double)tokens[k].logit - (double)tokens[0].logit) / mass *
                                scale * (k == 1 ? 1.0 + error : 1.0))
                      : 0.0f;
    }
    return KERNEL_OK;
}

/* What a draw depends on. */
typedef double (*source)(const struct topp_problem *problem, int64_t row);

static double own(const struct topp_problem *problem, int64_t row) {
    return uniform_of(problem->seed[row], problem->position[row]);
}
static double no_position(const struct topp_problem *problem, int64_t row) {
    return uniform_of(problem->seed[row], 0);
}
static double no_seed(const struct topp_problem *problem, int64_t row) {
    return uniform_of(42, problem->position[row]);
}
static double first_seed(const struct topp_problem *problem, int64_t row) {
    return uniform_of(problem->seed[0], problem->position[row]);
}
/* One random number for all rows. */
static double first_position(const struct topp_problem *problem, int64_t row) {
    return uniform_of(problem->seed[row], problem->position[0]);
}
/* Of the two rows and two draws of kinds.json: every second launch draws what the one before did.
 */
static double half_the_positions(const struct topp_problem *problem, int64_t row) {
    return uniform_of(problem->seed[row], problem->position[row] & ~INT64_C(4));
}
static double launches(const struct topp_problem *problem, int64_t row) {
    static int64_t count;
    return uniform_of(problem->seed[row], ++count);
}

/* Draws from the softmax over the first n + surplus tokens, logits divided by temperature. */
static int sample(const struct topp_problem *problem, void *workspace, int64_t surplus,
                  double temperature, source uniform) {
    struct honest_token *tokens = workspace;
    for (int64_t i = 0; i < problem->batch; i++) {
        const float *row = problem->logits + i * problem->stride;
        int64_t n = honest_cut(row, problem->vocab, problem->p[i], tokens) + surplus, k = 0;
        double mass = 0.0, reached = 0.0;
        n = n > problem->vocab ? problem->vocab : n;
        for (k = 0; k < n; k++)
            mass += exp(((double)tokens[k].logit - (double)tokens[0].logit) / temperature);
        const double target = mass * uniform(problem, i);
        for (k = 0; k + 1 < n; k++) {
            reached += exp(((double)tokens[k].logit - (double)tokens[0].logit) / temperature);
            if (reached > target)
                break;
        }
        problem->ids[i] = tokens[k].id;
    }
    return KERNEL_OK;
}

#define LAUNCH(NAME, CALL)                                                                         \
    static int NAME(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,   \
                    void *stream) {                                                                \
        (void)workspace_bytes, (void)stream;                                                       \
        return CALL;                                                                               \
    }
LAUNCH(probabilities, soften(problem, workspace, 0.0, 1.0))
LAUNCH(probabilities_off, soften(problem, workspace, 1e-3, 1.0))
LAUNCH(probabilities_unshared, soften(problem, workspace, 0.0, 0.9))
LAUNCH(ids, sample(problem, workspace, 0, 1.0, own))
LAUNCH(ids_hot, sample(problem, workspace, 0, 2.0, own))
LAUNCH(ids_uncut, sample(problem, workspace, 1000, 1.0, own))
LAUNCH(ids_stuck, sample(problem, workspace, 0, 1.0, no_position))
LAUNCH(ids_seedless, sample(problem, workspace, 0, 1.0, no_seed))
LAUNCH(ids_one_seed, sample(problem, workspace, 0, 1.0, first_seed))
LAUNCH(ids_in_step, sample(problem, workspace, 0, 1.0, first_position))
LAUNCH(ids_twice, sample(problem, workspace, 0, 1.0, half_the_positions))
LAUNCH(ids_counting, sample(problem, workspace, 0, 1.0, launches))

static int ids_lost(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                    void *stream) {
    const int status = ids(problem, workspace, workspace_bytes, stream);
    problem->ids[0] = -1;
    return status;
}

static int ids_scribbles(const struct topp_problem *problem, void *workspace,
                         size_t workspace_bytes, void *stream) {
    const int status = ids(problem, workspace, workspace_bytes, stream);
    problem->logits[0] += 1e-6f;
    return status;
}

static int ids_reseeds(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                       void *stream) {
    const int status = ids(problem, workspace, workspace_bytes, stream);
    ((int64_t *)(void *)(size_t)problem->seed)[0]++;
    return status;
}

#define VARIANT(NAME, OUTPUT)                                                                      \
    static const struct topp_variant variant_##NAME = {.name = #NAME,                              \
                                                       .summary = "of the tests",                  \
                                                       .device = KERNEL_DEVICE_CPU,                \
                                                       .output = OUTPUT,                           \
                                                       .contract = "exact",                        \
                                                       .workspace_size = honest_workspace,         \
                                                       .launch = NAME}
VARIANT(probabilities, TOPP_PROBABILITIES);
VARIANT(probabilities_off, TOPP_PROBABILITIES);
VARIANT(probabilities_unshared, TOPP_PROBABILITIES);
VARIANT(ids, TOPP_IDS);
VARIANT(ids_hot, TOPP_IDS);
VARIANT(ids_uncut, TOPP_IDS);
VARIANT(ids_stuck, TOPP_IDS);
VARIANT(ids_seedless, TOPP_IDS);
VARIANT(ids_one_seed, TOPP_IDS);
VARIANT(ids_in_step, TOPP_IDS);
VARIANT(ids_twice, TOPP_IDS);
VARIANT(ids_counting, TOPP_IDS);
VARIANT(ids_lost, TOPP_IDS);
VARIANT(ids_scribbles, TOPP_IDS);
VARIANT(ids_reseeds, TOPP_IDS);

static const struct topp_variant *const topp[] = {&variant_probabilities,
                                                  &variant_probabilities_off,
                                                  &variant_probabilities_unshared,
                                                  &variant_ids,
                                                  &variant_ids_hot,
                                                  &variant_ids_uncut,
                                                  &variant_ids_stuck,
                                                  &variant_ids_seedless,
                                                  &variant_ids_one_seed,
                                                  &variant_ids_in_step,
                                                  &variant_ids_twice,
                                                  &variant_ids_counting,
                                                  &variant_ids_lost,
                                                  &variant_ids_scribbles,
                                                  &variant_ids_reseeds,
                                                  NULL};

static size_t my_workspace(const struct gumbel_problem *problem) {
    return gumbel_cpu_log1p.workspace_size(problem);
}
static int my_draw(const struct gumbel_problem *problem, void *workspace, size_t workspace_bytes,
                   void *stream) {
    return gumbel_cpu_log1p.launch(problem, workspace, workspace_bytes, stream);
}
static const struct gumbel_variant my_log1p = {.name = "my_log1p",
                                               .noise_name = "log1p",
                                               .summary = "log1p again",
                                               .device = KERNEL_DEVICE_CPU,
                                               .workspace_size = my_workspace,
                                               .launch = my_draw};
/* log1p's noise under the name of another. */
static const struct gumbel_variant my_lie = {.name = "my_lie",
                                             .noise_name = "fp64",
                                             .summary = "log1p that claims fp64",
                                             .device = KERNEL_DEVICE_CPU,
                                             .workspace_size = my_workspace,
                                             .launch = my_draw};
static const struct gumbel_variant *const gumbel[] = {&my_log1p, &my_lie, NULL};
TOPP_PLUGIN_TABLE("kinds", topp, gumbel)
