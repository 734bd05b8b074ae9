#include "tests/emulated/device.h"

#include "tests/emulated/fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef EMULATED_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void *at, unsigned long bytes); /* of the runtime, undeclared */
extern "C" void __tsan_write_range(void *at, unsigned long bytes);
#endif

/* ThreadSanitizer takes fibers for threads: this file is built without it, and says itself what
 * orders what. Which of the two places of an object: by turns, so that who is ahead does not lend
 * its knowledge to who is behind. What the library copies or frees is seen in any case, so shared
 * lists do not grow. */
static void releases(void *object) {
#ifdef EMULATED_TSAN
    __tsan_release(object);
#endif
    (void)object;
}

static void acquires(void *object) {
#ifdef EMULATED_TSAN
    __tsan_acquire(object);
#endif
    (void)object;
}

static void writes(void *at, unsigned long bytes) {
#ifdef EMULATED_TSAN
    __tsan_write_range(at, bytes);
#endif
    (void)at, (void)bytes;
}

static void reads(const void *at, unsigned long bytes) {
#ifdef EMULATED_TSAN
    __tsan_read_range((void *)at, bytes);
#endif
    (void)at, (void)bytes;
}

namespace emulated {

struct place *here;

namespace {

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
struct {
    struct meeting meeting;
    std::vector<struct block> blocks;
    std::vector<struct mbarrier *> barriers;
    std::vector<struct message> messages; /* on their way */
    size_t shared_bytes;
    const std::function<void()> *kernel;
    char begin, end, barriers_ready;
} cluster;

std::vector<struct thread *> &threads = /* made once, used again, never destroyed */
    *new std::vector<struct thread *>;
struct thread *running;
struct fiber scheduler;
uint32_t order, noise_state;
unsigned passes;

[[noreturn]] void broken(const char *what, const char *detail) {
    if (running)
        fprintf(stderr, "emulated device: %s%s, thread %u of block %u\n", what, detail,
                here->thread.x, here->block.x);
    else
        fprintf(stderr, "emulated device: %s%s\n", what, detail);
    abort();
}

uint32_t noise() {
    noise_state ^= noise_state << 13;
    noise_state ^= noise_state >> 17;
    noise_state ^= noise_state << 5;
    return noise_state;
}

void give_way() {
    struct thread *const self = running;
    fiber_switch(&self->fiber, &scheduler);
}

/* Stands until the counter has changed. */
void stand(const unsigned *counter, unsigned mask, unsigned value, const char *what) {
    running->wait = (struct wait){counter, mask, value, what};
    if ((*counter & mask) == value)
        give_way();
    running->wait.counter = NULL;
}

void meeting_over(struct meeting *meeting) {
    meeting->arrived = 0;
    meeting->turn++;
}

void meet(struct meeting *meeting, const char *what, bool ordered) {
    const unsigned turn = meeting->turn;
    if (ordered)
        releases(&meeting->order[turn & 1]);
    if (++meeting->arrived == meeting->live)
        meeting_over(meeting);
    stand(&meeting->turn, ~0u, turn, what);
    if (ordered)
        acquires(&meeting->order[turn & 1]);
}

/* Who has ended is waited for no longer. */
void leave(struct meeting *meeting) {
    if (--meeting->live && meeting->arrived == meeting->live)
        meeting_over(meeting);
}

struct warp *own_warp() {
    return &running->block->warps[here->thread.x / WARP];
}

void thread_body() {
    for (;;) {
        acquires(&cluster.begin);
        (*cluster.kernel)();
        for (const std::vector<copy> &group : running->groups)
            if (!group.empty())
                broken("ended with copies on their way", "");
        struct warp *const warp = own_warp();
        if (warp->meeting.arrived)
            broken("ended while its warp waits in ", warp->operation);
        warp->meeting.live--;
        leave(&running->block->meeting);
        leave(&cluster.meeting);
        running->done = true;
        releases(&cluster.end);
        give_way();
    }
}

void deliver(struct message *message) {
    memcpy(message->to, message->bytes, sizeof message->bytes);
    struct mbarrier *const barrier = message->barrier;
    barrier->bytes -= (int64_t)sizeof message->bytes;
    if (!barrier->pending && !barrier->bytes) {
        barrier->phase++;
        barrier->pending = barrier->expected;
    }
}

/* Some of the messages, or all. */
void deliver_messages(bool all) {
    size_t kept = 0;
    for (size_t i = 0; i < cluster.messages.size(); i++)
        if (all || order < 2 || noise() & 1)
            deliver(&cluster.messages[i]);
        else
            cluster.messages[kept++] = cluster.messages[i];
    cluster.messages.resize(kept);
}

void stuck(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!threads[i]->done && (!i || threads[i]->wait.what != threads[i - 1]->wait.what))
            fprintf(stderr, "emulated device: thread %u of block %u waits in %s\n",
                    threads[i]->place.thread.x, threads[i]->place.block.x, threads[i]->wait.what);
    running = NULL;
    broken("all that have not ended wait for ever", "");
}

/* A warp that is far behind the others is what goes wrong most rarely: now and then one sits out
 * for some passes. */
bool sits_out(const struct thread *thread) {
    struct warp *const warp = &thread->block->warps[thread->place.thread.x / WARP];
    if (order < 2)
        return false;
    if (warp->awake_from <= passes && noise() % (128 * WARP) == 0)
        warp->awake_from = passes + (1u << noise() % 9);
    return warp->awake_from > passes;
}

/* Lets every thread that can go on do so once. False when none has done anything. */
bool pass(std::vector<unsigned> &turns) {
    bool moved = !cluster.messages.empty();
    const size_t count = turns.size();
    if (order > 1)
        for (size_t i = count - 1; i > 0; i--)
            std::swap(turns[i], turns[noise() % (i + 1)]);
    deliver_messages(false);
    passes++;
    for (size_t i = 0; i < count; i++) {
        struct thread *const next = threads[turns[order == 1 ? count - 1 - i : i]];
        const struct wait *const wait = &next->wait;
        if (next->done || (wait->counter && (*wait->counter & wait->mask) == wait->value))
            continue;
        moved = true;
        if (sits_out(next))
            continue;
        running = next;
        here = &next->place;
        fiber_switch(&scheduler, &next->fiber);
    }
    running = NULL;
    return moved;
}

void make_threads(size_t count) {
    while (threads.size() < count) {
        struct thread *const thread = new struct thread();
        const char *const fault = fiber_prepare(&thread->fiber, thread_body);
        if (fault)
            broken(fault, "");
        threads.push_back(thread);
    }
}

void open_block(const struct shape &shape, unsigned rank, unsigned index) {
    struct block *const block = &cluster.blocks[rank];
    const unsigned count = shape.block.x;
    *block = {};
    block->meeting.live = count;
    block->warps.resize(count / WARP);
    for (struct warp &warp : block->warps)
        warp.meeting.live = WARP;
    if (posix_memalign((void **)&block->shared, 128, shape.shared_bytes + 16))
        broken("no memory", "");
    for (size_t i = 0; i < shape.shared_bytes; i++)
        block->shared[i] = (unsigned char)(noise() >> 8);
    writes(block->shared, shape.shared_bytes);
    for (unsigned i = 0; i < count; i++) {
        struct thread *const thread = threads[rank * count + i];
        thread->place = (struct place){{i, 0, 0},
                                       {index % shape.grid.x, index / shape.grid.x, 0},
                                       shape.block,
                                       shape.grid,
                                       block->shared};
        thread->block = block;
        thread->wait = {};
        thread->groups.assign(1, {});
        thread->done = false;
    }
}

void close_cluster() {
    if (!cluster.messages.empty())
        broken("ended with stores to other blocks on their way", "");
    for (struct block &block : cluster.blocks)
        free(block.shared);
    for (struct mbarrier *barrier : cluster.barriers) {
        if (barrier->pending != barrier->expected || barrier->bytes)
            broken("ended with a phase of an mbarrier half done", "");
        barrier->magic = 0;
        free(barrier);
    }
    cluster.barriers.clear();
}

struct mbarrier *barrier_at(const uint64_t *at) {
    struct mbarrier *const barrier = (struct mbarrier *)(uintptr_t)*at;
    for (struct mbarrier *known : cluster.barriers)
        if (known == barrier && barrier->magic == BARRIER_MAGIC)
            return barrier;
    broken("no mbarrier where one is used", "");
}

void settle(struct mbarrier *barrier) {
    if (barrier->pending || barrier->bytes)
        return;
    barrier->phase++;
    barrier->pending = barrier->expected;
}

} // namespace

void run(const struct shape &shape, const std::function<void()> &kernel) {
    const unsigned size = shape.cluster ? shape.cluster : 1;
    const size_t count = (size_t)size * shape.block.x;
    std::vector<unsigned> turns(count);
    if (shape.block.y != 1 || shape.block.z != 1 || shape.block.x % WARP ||
        shape.block.x > MOST_THREADS || shape.grid.z != 1 || shape.grid.x % size)
        broken("a launch of a shape that is not emulated", "");
    for (size_t i = 0; i < count; i++)
        turns[i] = (unsigned)i;
    const char *const asked = getenv("EMULATED_ORDER");
    order = asked ? (uint32_t)strtoul(asked, NULL, 10) : 0;
    cluster.barriers.reserve(1 << 8); /* not to grow while fibers run: see above */
    cluster.messages.reserve(1 << 16);
    make_threads(count);
    fiber_adopt(&scheduler);
    noise_state = 2463534242u + 2 * order;
    cluster.kernel = &kernel;
    cluster.shared_bytes = shape.shared_bytes;
    for (unsigned first = 0; first < shape.grid.x * shape.grid.y; first += size) {
        cluster.blocks.resize(size);
        cluster.meeting = {};
        cluster.meeting.live = (unsigned)count;
        for (unsigned rank = 0; rank < size; rank++)
            open_block(shape, rank, first + rank);
        releases(&cluster.begin);
        while (pass(turns))
            ;
        for (size_t i = 0; i < count; i++)
            if (!threads[i]->done)
                stuck(count);
        acquires(&cluster.end);
        close_cluster();
    }
}

bool block_barrier(bool value) {
    struct block *const block = running->block;
    block->any |= value;
    if (block->meeting.arrived + 1 == block->meeting.live) {
        block->any_result = block->any;
        block->any = false;
    }
    meet(&block->meeting, "__syncthreads", true);
    return block->any_result;
}

const uint64_t *warp_meet(uint32_t mask, const char *operation, uint64_t value, bool ordered) {
    struct warp *const warp = own_warp();
    if (mask != ~0u || warp->meeting.live != WARP)
        broken("part of a warp in ", operation);
    if (!warp->meeting.arrived)
        warp->operation = operation;
    else if (warp->operation != operation && strcmp(warp->operation, operation) != 0)
        broken("lanes of a warp in different operations, one in ", operation);
    warp->in[here->thread.x % WARP] = value;
    if (warp->meeting.arrived + 1 == WARP)
        for (unsigned i = 0; i < WARP; i++)
            warp->out[i] = warp->in[i];
    meet(&warp->meeting, operation, ordered);
    return warp->out;
}

void breathe() {
    if (order > 1 && noise() % 64 == 0)
        give_way();
}

void copy_start(void *to, const void *from) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16)
        broken("cp.async of what is not aligned", "");
    running->groups.back().push_back({to, from});
}

void copy_commit() {
    running->groups.push_back({});
}

static void copy_arrive(size_t groups_left) {
    std::vector<std::vector<copy>> &groups = running->groups;
    while (groups.size() > groups_left) {
        for (const struct copy &copy : groups.front()) {
            reads(copy.from, 16);
            writes(copy.to, 16);
            memcpy(copy.to, copy.from, 16);
        }
        groups.erase(groups.begin());
    }
}

void copy_wait(unsigned groups) {
    copy_arrive(groups + 1); /* the open one besides */
}

void copy_wait_all() {
    copy_arrive(0);
    running->groups.push_back({});
}

void cluster_arrive() {
    struct meeting *const meeting = &cluster.meeting;
    running->cluster_turn = meeting->turn;
    if (++meeting->arrived == meeting->live)
        meeting_over(meeting);
}

void cluster_wait() {
    stand(&cluster.meeting.turn, ~0u, running->cluster_turn, "barrier.cluster.wait");
    acquires(&cluster.barriers_ready);
}

void *peer(const void *mine, int rank) {
    const size_t offset = (size_t)((const unsigned char *)mine - here->shared);
    if (rank < 0 || (size_t)rank >= cluster.blocks.size() || offset >= cluster.shared_bytes)
        broken("no such address in another block", "");
    const struct block *const block = &cluster.blocks[(size_t)rank];
    if (!block->meeting.live)
        broken("reaches into a block that has ended", "");
    return block->shared + offset;
}

void barrier_init(uint64_t *at, unsigned arrivals) {
    struct mbarrier *const barrier = (struct mbarrier *)calloc(1, sizeof *barrier);
    barrier->magic = BARRIER_MAGIC;
    barrier->expected = barrier->pending = arrivals;
    cluster.barriers.push_back(barrier);
    *at = (uint64_t)(uintptr_t)barrier;
    writes(at, sizeof *at);
}

/* Lent to all that wait for the cluster from then on: no more than that a barrier is there. */
void barrier_init_release() {
    releases(&cluster.barriers_ready);
}

/* Arrivals alone are seen as reads of the barrier: as many as wait would make ThreadSanitizer,
 * which remembers four accesses a word, forget who made it. */
void barrier_arrive(uint64_t *at, unsigned bytes) {
    reads(at, sizeof *at);
    struct mbarrier *const barrier = barrier_at(at);
    if (!barrier->pending)
        broken("an mbarrier is arrived at too often", "");
    releases(&barrier->order[barrier->phase & 1]);
    barrier->bytes += bytes;
    barrier->pending--;
    settle(barrier);
}

void barrier_wait(uint64_t *at, unsigned parity) {
    struct mbarrier *const barrier = barrier_at(at);
    const unsigned turn = barrier->phase & 1;
    if (turn == parity)
        stand(&barrier->phase, 1, parity, "mbarrier.try_wait");
    acquires(&barrier->order[parity]);
}

void store_async(void *to, const void *value, uint64_t *at) {
    struct message message = {};
    message.to = to;
    message.barrier = barrier_at(at);
    memcpy(message.bytes, value, sizeof message.bytes);
    reads(at, sizeof *at);
    writes(to, sizeof message.bytes);
    releases(&message.barrier->order[message.barrier->phase & 1]);
    cluster.messages.push_back(message);
}

} // namespace emulated
