/* Runs a fuzz target over the files of the folders given: the corpus as an ordinary test, for
 * machines without clang. */
#include "fuzz.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static const char *folder;

static void replay(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size ? (size_t)size : 1); /* no byte more, so that ASan sees overruns */
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
    fclose(file);
    assert_int_equal(LLVMFuzzerTestOneInput(bytes, (size_t)size), 0);
    free(bytes);
}

static void test_corpus(void **state) {
    (void)state;
    int files = 0;
    DIR *directory = opendir(folder);
    if (!directory)
        fail_msg("no folder %s", folder);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.') {
            print_message("%s\n", entry->d_name);
            replay(entry->d_name);
            files++;
        }
    closedir(directory);
    assert_true(files >= 3);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    folder = argc == 2 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
