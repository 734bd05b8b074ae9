/* Receipts: read, and their seal compared. */
#include "fuzz.h"

#include "oracle/receipt.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *receipt = NULL;
    struct tb_error error = TB_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    const int descriptor = fuzz_file(data, size, path);
    const enum tb_status status = receipt_read(path, &receipt, &error);
    fuzz_check_error(status, &error);
    PROMISE((status == TB_OK) == (receipt != NULL));
    /* Holds or not, a changed receipt never does. */
    if (receipt && receipt_seal_holds(receipt)) {
        json_object_set_new(receipt, "fuzz", json_true());
        PROMISE(!receipt_seal_holds(receipt));
    }
    json_decref(receipt);
    close(descriptor);
    return 0;
}
