/* results.json as charts and the report page read it, in its writer's layout and in any other. */
#include "fuzz.h"

#include "bench/plot_source.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct plot_results results;
    struct tb_error error = TB_ERROR_INIT;
    char path[FUZZ_PATH_BYTES], footer[512];
    const int descriptor = fuzz_file(data, size, path);
    const enum tb_status status = plot_results_read(path, &results, &error);
    fuzz_check_error(status, &error);
    if (status == TB_OK) {
        plot_footer(&results, footer, sizeof footer);
        for (size_t i = 0; i < results.count; i++) {
            PROMISE(json_is_object(results.cells[i].json));
            PROMISE(!results.cells[i].samples || results.cells[i].relative);
        }
    }
    plot_results_free(&results);
    close(descriptor);
    return 0;
}
