/* What blocks of a cluster have in common: its barrier, each other's shared memory, mbarriers,
 * stores on their way. */
#include "tests/emulated/state.h"

#include <cstdlib>
#include <cstring>

namespace emulated {

namespace {

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

/* Whoever sends must have been waited for. */
void check_alive(const void *to) {
    for (const struct block &block : cluster.blocks)
        if ((const unsigned char *)to >= block.shared &&
            (const unsigned char *)to < block.shared + cluster.shared_bytes && !block.meeting.live)
            broken("a store arrives in a block that has ended", "");
}

void deliver(struct message *message) {
    check_alive(message->to);
    memcpy(message->to, message->bytes, sizeof message->bytes);
    struct mbarrier *const barrier = message->barrier;
    barrier->bytes -= (int64_t)sizeof message->bytes;
    settle(barrier);
}

} // namespace

void deliver_messages() {
    size_t kept = 0;
    for (size_t i = 0; i < cluster.messages.size(); i++)
        if (order < 2 || noise() & 1)
            deliver(&cluster.messages[i]);
        else
            cluster.messages[kept++] = cluster.messages[i];
    cluster.messages.resize(kept);
}

void exchange_open() {
    cluster.barriers.reserve(1 << 8); /* not to grow while fibers run: see state.h */
    cluster.messages.reserve(1 << 16);
}

void exchange_close() {
    if (!cluster.messages.empty())
        broken("ended with stores to other blocks on their way", "");
    for (struct mbarrier *barrier : cluster.barriers) {
        if (barrier->pending != barrier->expected || barrier->bytes)
            broken("ended with a phase of an mbarrier half done", "");
        barrier->magic = 0;
        free(barrier);
    }
    cluster.barriers.clear();
}

void cluster_arrive() {
    struct meeting *const meeting = &cluster.meeting;
    running->cluster_turn = meeting->turn;
    arrive(meeting);
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
