/* A CUDA device that is not there: kernels compiled as C++ run on the host, one fiber for each of
 * their threads, blocks of a cluster side by side, clusters one after the other. What is seen this
 * way is the logic: masks, indices, who waits for whom; not the time.
 *
 * It is stricter than a GPU where that finds mistakes. Shared memory starts as noise. An
 * asynchronous copy arrives when it is waited for, not before; an asynchronous store to another
 * block some time later. EMULATED_ORDER in the environment says which thread goes on when several
 * can: 0 (or nothing) in turn, 1 the last first, any other number draws from that seed, also after
 * atomics, lets a warp fall behind now and then, and makes other noise. All lanes that a warp
 * operation names must come to the same operation. A thread that waits for ever, an mbarrier
 * arrived at too often, a copy that nobody waited for: the program ends and says so. Built with
 * ThreadSanitizer, every access to memory is checked against what barriers order, among the blocks
 * of a cluster, too.
 *
 * EMULATED_CLUSTER and EMULATED_SHARED make a lesser device of it (runtime.cc).
 *
 * Called by the headers in include/, which stand in for those of the CUDA toolkit. */
#ifndef TOPP_TESTS_EMULATED_DEVICE_H
#define TOPP_TESTS_EMULATED_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <functional>

namespace emulated {

struct index3 {
    unsigned x, y, z;
};

/* What the running thread is. */
struct place {
    index3 thread, block, block_size, grid_size;
    unsigned char *shared; /* dynamic, of its block */
};
extern struct place *here;

/* Shapes of a launch; cluster: blocks of a cluster, along x. */
struct shape {
    index3 grid, block;
    unsigned cluster;
    size_t shared_bytes;
};
void run(const struct shape &shape, const std::function<void()> &kernel);

/* Barrier of the block; true if `value` was in any thread. */
bool block_barrier(bool value);

/* A warp's threads meet; returns each lane's value. All lanes of the mask must name the same
 * operation; only whole warps are known. ordered: memory, too. */
const uint64_t *warp_meet(uint32_t mask, const char *operation, uint64_t value, bool ordered);

/* After an atomic operation: another thread may go on. */
void breathe();

void copy_start(void *to, const void *from); /* 16 bytes */
void copy_commit();
void copy_wait(unsigned groups);
void copy_wait_all();

void cluster_arrive();
void cluster_wait();
/* Address `mine` of this block, in block `rank` of its cluster. */
void *peer(const void *mine, int rank);

void barrier_init(uint64_t *barrier, unsigned arrivals);
void barrier_init_release();
void barrier_arrive(uint64_t *barrier, unsigned bytes); /* of any block of the cluster */
void barrier_wait(uint64_t *barrier, unsigned parity);
/* 16 bytes to `to`, some time, and then off what `barrier` waits for. */
void store_async(void *to, const void *value, uint64_t *barrier);

} // namespace emulated

#endif
