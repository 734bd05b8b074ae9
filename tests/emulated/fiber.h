/* Fibers: stacks that take turns in one thread of the host; sanitizers are told. */
#ifndef TOPP_TESTS_EMULATED_FIBER_H
#define TOPP_TESTS_EMULATED_FIBER_H

#include <setjmp.h>
#include <stddef.h>

struct fiber {
    jmp_buf place;
    void *stack;
    size_t stack_bytes;
    void *fake_stack; /* of AddressSanitizer */
    void *tsan_fiber; /* of ThreadSanitizer */
    void (*body)(void);
};

/* A fiber that runs `body` when it is first switched to; body must not return. It lives as long as
 * the process. NULL or a message. */
const char *fiber_prepare(struct fiber *fiber, void (*body)(void));
/* The calling thread as a fiber to come back to. */
void fiber_adopt(struct fiber *fiber);
void fiber_switch(struct fiber *from, struct fiber *to);

#endif
