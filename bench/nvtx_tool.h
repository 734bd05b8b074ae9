/* What a tool needs of NVTX 3, to see the ranges of a program it was injected into. The program's
 * NVTX loads the library that NVTX_INJECTION64_PATH names and calls its InitializeInjectionNvtx2,
 * which puts its own functions into tables of slots. Layout and numbers are those of
 * nvtx3/nvtxDetail/nvtxTypes.h, kept here so that a build without the CUDA toolkit has them; a
 * build with it compares the two (bench/inject_nvtx.c). */
#ifndef TOPP_BENCH_NVTX_TOOL_H
#define TOPP_BENCH_NVTX_TOOL_H

#include <stddef.h>
#include <stdint.h>

enum { NVTX_TOOL_CALLBACKS = 1 }; /* the table of tables */

enum nvtx_tool_module { NVTX_TOOL_CORE = 1, NVTX_TOOL_CORE2 = 5 };

enum nvtx_tool_core {
    NVTX_TOOL_RANGE_START_EX = 4,
    NVTX_TOOL_RANGE_START_A = 5,
    NVTX_TOOL_RANGE_START_W = 6,
    NVTX_TOOL_RANGE_END = 7,
    NVTX_TOOL_RANGE_PUSH_EX = 8,
    NVTX_TOOL_RANGE_PUSH_A = 9,
    NVTX_TOOL_RANGE_PUSH_W = 10,
    NVTX_TOOL_RANGE_POP = 11,
};

enum nvtx_tool_core2 {
    NVTX_TOOL_DOMAIN_RANGE_START_EX = 2,
    NVTX_TOOL_DOMAIN_RANGE_END = 3,
    NVTX_TOOL_DOMAIN_RANGE_PUSH_EX = 4,
    NVTX_TOOL_DOMAIN_RANGE_POP = 5,
    NVTX_TOOL_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_TOOL_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_TOOL_DOMAIN_CREATE_A = 12,
    NVTX_TOOL_DOMAIN_CREATE_W = 13,
};

enum nvtx_tool_message {
    NVTX_TOOL_ASCII = 1,
    NVTX_TOOL_UNICODE = 2,
    NVTX_TOOL_REGISTERED = 3, /* what a register function of the tool returned */
};

typedef void (*nvtx_tool_function)(void);
typedef nvtx_tool_function **nvtx_tool_slots; /* [number of the function]: where its pointer is */

struct nvtx_tool_callbacks {
    size_t struct_size;
    /* 1 on success; *count receives how many slots there are, slot 0 being none. */
    int (*get_slots)(int32_t module, nvtx_tool_slots *slots, unsigned int *count);
};
typedef const void *nvtx_tool_get_table(uint32_t table);

struct nvtx_tool_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

#endif
