/* What runs on the emulated device, for the files that make it up. */
#ifndef TOPP_TESTS_EMULATED_STATE_H
#define TOPP_TESTS_EMULATED_STATE_H

#include "tests/emulated/device.h"
#include "tests/emulated/fiber.h"

#include <vector>

#ifdef EMULATED_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void *at, unsigned long bytes); /* of the runtime, undeclared */
extern "C" void __tsan_write_range(void *at, unsigned long bytes);
#endif

/* ThreadSanitizer takes fibers for threads: the device is built without it, and says itself
 * what orders what. Which of the two places of an object: by turns, so that who is ahead does not
 * lend its knowledge to who is behind. What the library copies or frees is seen in any case, so
 * shared lists do not grow. */
static inline void releases(void *object) {
#ifdef EMULATED_TSAN
    __tsan_release(object);
#endif
    (void)object;
}

static inline void acquires(void *object) {
#ifdef EMULATED_TSAN
    __tsan_acquire(object);
#endif
    (void)object;
}

static inline void writes(void *at, unsigned long bytes) {
#ifdef EMULATED_TSAN
    __tsan_write_range(at, bytes);
#endif
    (void)at, (void)bytes;
}

static inline void reads(const void *at, unsigned long bytes) {
#ifdef EMULATED_TSAN
    __tsan_read_range((void *)at, bytes);
#endif
    (void)at, (void)bytes;
}

namespace emulated {

enum { WARP = 32, MOST_THREADS = 1024 };

struct block;

/* Blocked while (*counter & mask) == value. */
struct wait {
    const unsigned *counter;
    unsigned mask, value;
    const char *what;
};

struct copy {
    void *to;
    const void *from;
};

struct thread {
    struct fiber fiber;
    struct place place;
    struct block *block;
    struct wait wait;
    std::vector<std::vector<copy>> groups; /* on their way, the last one still open */
    unsigned cluster_turn;                 /* of its last arrival */
    bool done;
};

/* Where a number of threads meet again and again. */
struct meeting {
    unsigned arrived, turn, live;
    char order[2];
};

struct warp {
    struct meeting meeting;
    const char *operation;
    uint64_t in[WARP], out[WARP];
    unsigned awake_from; /* the pass before which it sits out */
};

struct block {
    struct meeting meeting;
    bool any, any_result;
    std::vector<struct warp> warps;
    unsigned char *shared; /* malloc'ed to the byte */
};

/* What an mbarrier's eight bytes point to. */
struct mbarrier {
    uint64_t magic;
    unsigned expected, pending, phase;
    int64_t bytes;
    char order[2];
};
const uint64_t BARRIER_MAGIC = 0x6d62617272696572;

struct message {
    unsigned char bytes[16];
    void *to;
    struct mbarrier *barrier;
};

/* The cluster that runs. */
struct cluster {
    struct meeting meeting;
    std::vector<struct block> blocks;
    std::vector<struct mbarrier *> barriers;
    std::vector<struct message> messages; /* on their way */
    size_t shared_bytes;
    const std::function<void()> *kernel;
    char begin, end, barriers_ready;
};

extern struct cluster cluster;
extern struct thread *running;
extern uint32_t order; /* EMULATED_ORDER */

/* Ends the program: the kernel did what it must not. */
[[noreturn]] void broken(const char *what, const char *detail);

/* The next number drawn. */
uint32_t noise();

/* Stands until (*counter & mask) is no longer value; `what` says where, should that be for ever. */
void stand(const unsigned *counter, unsigned mask, unsigned value, const char *what);

/* One more has come to the meeting; the last one ends it. */
void arrive(struct meeting *meeting);

/* Of exchange.cc: stores that are on their way arrive, some or all; what must be so at the end. */
void deliver_messages();
void exchange_open();
void exchange_close();

} // namespace emulated

#endif
