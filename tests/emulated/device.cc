#include "tests/emulated/state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulated {

struct place *here;
struct cluster cluster;
struct thread *running;
uint32_t order;

namespace {

std::vector<struct thread *> &threads = /* made once, used again, never destroyed */
    *new std::vector<struct thread *>;
struct fiber scheduler;
uint32_t noise_state;
unsigned passes;

void give_way() {
    struct thread *const self = running;
    fiber_switch(&self->fiber, &scheduler);
}

} // namespace

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

void stand(const unsigned *counter, unsigned mask, unsigned value, const char *what) {
    running->wait = (struct wait){counter, mask, value, what};
    if ((*counter & mask) == value)
        give_way();
    running->wait.counter = NULL;
}

void arrive(struct meeting *meeting) {
    if (++meeting->arrived < meeting->live)
        return;
    meeting->arrived = 0;
    meeting->turn++;
}

namespace {

void meet(struct meeting *meeting, const char *what, bool ordered) {
    const unsigned turn = meeting->turn;
    if (ordered)
        releases(&meeting->order[turn & 1]);
    arrive(meeting);
    stand(&meeting->turn, ~0u, turn, what);
    if (ordered)
        acquires(&meeting->order[turn & 1]);
}

/* Who has ended is waited for no longer. */
void leave(struct meeting *meeting) {
    meeting->live--;
    if (meeting->arrived && meeting->arrived == meeting->live) {
        meeting->arrived--;
        arrive(meeting);
    }
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
    deliver_messages();
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
    char *end = NULL;
    order = asked ? (uint32_t)strtoul(asked, &end, 10) : 0;
    if (asked && (end == asked || *end))
        broken("EMULATED_ORDER is no number: ", asked);
    exchange_open();
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
        exchange_close();
        for (struct block &block : cluster.blocks)
            free(block.shared);
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

} // namespace emulated
