/* Profiles: parsed, and multiplied out to cells when these are few enough to do often. */
#include "fuzz.h"

#include "bench/profile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FEW_CELLS = 2000, VARIANTS_AT_MOST = 16 };

static size_t at_least_1(size_t count) {
    return count ? count : 1;
}

static double cells_at_most(const struct profile *profile) {
    double cells = 0;
    for (size_t i = 0; i < profile->entry_count; i++) {
        const struct profile_entry *entry = &profile->entries[i];
        const size_t lists[] = {
            entry->kernels.all ? VARIANTS_AT_MOST : entry->kernels.count,
            entry->family_count,
            entry->vocab.count,
            entry->batch.count,
            entry->p.count,
            entry->temperature.count,
            entry->statistics.count,
            4, /* l2 and launch */
        };
        double product = 1;
        for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++)
            product *= (double)at_least_1(lists[k]);
        cells += product;
    }
    return cells;
}

static void multiply_out(const char *link) {
    for (int device = KERNEL_DEVICE_CPU; device <= KERNEL_DEVICE_CUDA; device++) {
        struct plan plan;
        struct tb_error error = TB_ERROR_INIT;
        const struct plan_options options = {.profile = link,
                                             .profile_dir = "/nonexistent",
                                             .captured_dir = "/nonexistent",
                                             .device = (enum kernel_device)device};
        const enum tb_status status = plan_load(&options, &plan, &error);
        fuzz_check_error(status, &error);
        PROMISE((status == TB_OK) == (plan.count > 0));
        for (size_t i = 1; i < plan.count; i++)
            PROMISE(strcmp(plan.cells[i - 1].name, plan.cells[i].name) != 0);
        plan_free(&plan);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile profile;
    struct tb_error error = TB_ERROR_INIT;
    char path[FUZZ_PATH_BYTES], link[FUZZ_PATH_BYTES];
    const int descriptor = fuzz_file(data, size, path);
    const enum tb_status status = profile_load(path, &profile, &error);
    fuzz_check_error(status, &error);
    if (status == TB_OK) {
        PROMISE(profile.entry_count >= 1 && profile.entry_count <= PROFILE_MOST_ENTRIES);
        PROMISE(profile.expect_count <= PROFILE_MOST_EXPECT);
        PROMISE(memchr(profile.name, '\0', sizeof profile.name));
        if (cells_at_most(&profile) <= FEW_CELLS) {
            /* A path is a profile's only when it ends in .json. */
            snprintf(link, sizeof link, "/tmp/topp-fuzz-%d.json", (int)getpid());
            unlink(link);
            PROMISE(!symlink(path, link));
            multiply_out(link);
            unlink(link);
        }
    } else {
        PROMISE(strcmp(error.file, path) == 0 || status == TB_NO_MEMORY);
        PROMISE(!profile.entries && !profile.expects);
    }
    profile_free(&profile);
    close(descriptor);
    return 0;
}
