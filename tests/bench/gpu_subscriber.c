/* tim-08: while somebody else holds CUPTI, timing is refused with that reason, gating is not, and
 * both work again afterwards. Skipped (77) where there is no usable GPU. */
#include "bench/cupti_library.h"
#include "bench/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void CUPTIAPI other_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                    const void *data) {
    (void)user, (void)domain, (void)id, (void)data;
}

static void test_another_subscriber(void **state) {
    (void)state;
    struct cupti_library library;
    CUpti_SubscriberHandle other;
    struct device *device = NULL;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(cupti_library_load(&library, &error), TB_OK);
    assert_int_equal(library.subscribe(&other, other_callback, NULL), CUPTI_SUCCESS);

    assert_int_equal(device_cuda_open(&(struct device_options){0}, &device, &error),
                     TB_UNAVAILABLE);
    printf("refused: %s\n", error.message);
    assert_non_null(strstr(error.message, "another profiler holds CUPTI"));
    assert_non_null(strstr(error.message, "--timer events"));
    error = (struct tb_error)TB_ERROR_INIT;
    assert_int_equal(device_cuda_open(&(struct device_options){.gate_only = true}, &device, &error),
                     TB_OK);
    device->ops->close(device);

    assert_int_equal(library.unsubscribe(other), CUPTI_SUCCESS);
    assert_int_equal(device_cuda_open(&(struct device_options){0}, &device, &error), TB_OK);
    device->ops->close(device);
}

int main(void) {
    char why[256];
    if (!device_cuda_usable(why, sizeof why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_subscriber)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
