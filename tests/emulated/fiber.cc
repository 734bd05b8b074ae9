#include "tests/emulated/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef EMULATED_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(EMULATED_TSAN)
enum { STACK_BYTES = 256 * 1024 };
#else
enum { STACK_BYTES = 64 * 1024 };
#endif

static struct fiber *starting, *starter;

static void arrived(struct fiber *fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_stack, NULL, NULL);
#endif
    (void)fiber;
}

static void leaving(struct fiber *from, struct fiber *to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
#ifdef EMULATED_TSAN
    __tsan_switch_to_fiber(to->tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    (void)from, (void)to;
}

/* On the new stack: back to who prepared it, and then, when it is switched to, on. */
static void trampoline(void) {
    struct fiber *const self = starting;
    arrived(self);
    if (!_setjmp(self->place)) {
        leaving(self, starter);
        _longjmp(starter->place, 1);
    }
    arrived(self);
    self->body();
}

const char *fiber_prepare(struct fiber *fiber, void (*body)(void)) {
    static struct fiber caller;
    ucontext_t context;
    fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED)
        return "no memory for a stack";
    fiber->stack_bytes = STACK_BYTES;
    fiber->body = body;
#ifdef EMULATED_TSAN
    fiber->tsan_fiber = __tsan_create_fiber(0);
#endif
    if (getcontext(&context))
        return "getcontext failed";
    context.uc_stack.ss_sp = fiber->stack;
    context.uc_stack.ss_size = fiber->stack_bytes;
    context.uc_link = NULL;
    makecontext(&context, trampoline, 0);
    fiber_adopt(&caller);
    starting = fiber;
    starter = &caller;
    if (!_setjmp(caller.place)) {
        leaving(&caller, fiber);
        setcontext(&context);
    }
    arrived(&caller);
    return NULL;
}

void fiber_adopt(struct fiber *fiber) {
#if defined(__SANITIZE_ADDRESS__)
    static void *stack;
    static size_t bytes;
    if (!stack) {
        pthread_attr_t attributes;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &stack, &bytes);
        pthread_attr_destroy(&attributes);
    }
    fiber->stack = stack;
    fiber->stack_bytes = bytes;
#endif
#ifdef EMULATED_TSAN
    fiber->tsan_fiber = __tsan_get_current_fiber();
#endif
    (void)fiber;
}

void fiber_switch(struct fiber *from, struct fiber *to) {
    if (!_setjmp(from->place)) {
        leaving(from, to);
        _longjmp(to->place, 1);
    }
    arrived(from);
}
