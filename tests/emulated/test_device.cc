/* The emulated device itself: right kernels give right results in any order, wrong ones are found
 * out. */
#include <cuda_runtime.h>
#include <kernels/cuda/ptx.cuh>

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

enum { THREADS = 64, RANKS = 4 };
static int out[RANKS * THREADS];

static void start(void (*kernel)(), unsigned cluster) {
    const emulated::shape shape = {{cluster, 1, 1}, {THREADS, 1, 1}, cluster, 1024};
    emulated::run(shape, kernel);
}

/* Neighbours' values through shared memory, with the barrier that this needs or without. */
template <bool kBarrier> static void neighbour() {
    int *const shared = (int *)ptx_dynamic_shared();
    shared[threadIdx.x] = (int)threadIdx.x;
    if (kBarrier)
        __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % THREADS];
}

static int neighbours_right() {
    int right = 0;
    for (int i = 0; i < THREADS; i++)
        right += out[i] == (i + 1) % THREADS;
    return right;
}

static void test_barrier(void **) {
    static const char *const orders[] = {"0", "1", "5", "6"};
    for (const char *order : orders) {
        setenv("EMULATED_ORDER", order, 1);
        start(neighbour<true>, 1);
        assert_int_equal(neighbours_right(), THREADS);
        start(neighbour<false>, 1);
        assert_true(neighbours_right() < THREADS); /* noise, where the neighbour was late */
    }
    unsetenv("EMULATED_ORDER");
}

static void warp() {
    const int lane = (int)(threadIdx.x % 32);
    const int sum = __reduce_add_sync(~0u, lane), most = __reduce_max_sync(~0u, lane);
    const int next = __shfl_down_sync(~0u, lane, 1), last = __shfl_sync(~0u, lane, 31);
    const unsigned odd = __ballot_sync(~0u, lane & 1), same = __match_any_sync(~0u, lane / 16);
    out[threadIdx.x] = sum == 496 && most == 31 && next == (lane < 31 ? lane + 1 : 31) &&
                       last == 31 && odd == 0xaaaaaaaa &&
                       same == (lane < 16 ? 0xffffu : 0xffff0000u);
}

static void test_warp(void **) {
    start(warp, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(out[i], 1);
}

/* Every block sends its number to every block, by asynchronous stores and by plain ones. */
struct mail {
    uint4 in[2][RANKS];
    uint64_t barrier[2];
};

static void exchange() {
    struct mail *const mail = (struct mail *)ptx_dynamic_shared();
    const int rank = (int)blockIdx.x;
    if (threadIdx.x == 0) {
        ptx_barrier_init(&mail->barrier[0], 1);
        ptx_barrier_init(&mail->barrier[1], RANKS);
        ptx_barrier_init_release();
    }
    __syncthreads();
    ptx_cluster_arrive();
    ptx_cluster_wait();
    if (threadIdx.x == 0)
        ptx_barrier_expect(&mail->barrier[0], RANKS * sizeof(uint4));
    if (threadIdx.x < RANKS) {
        const uint4 value = make_uint4((unsigned)rank, 1, 2, 3);
        ptx_peer_store_async(&mail->in[0][rank], value, &mail->barrier[0], (int)threadIdx.x);
        ptx_peer_store(&mail->in[1][rank], value, (int)threadIdx.x);
        ptx_peer_arrive(&mail->barrier[1], (int)threadIdx.x);
    }
    ptx_barrier_wait(&mail->barrier[0], 0);
    ptx_barrier_wait(&mail->barrier[1], 0);
    int right = 0;
    for (unsigned from = 0; from < RANKS; from++)
        right += mail->in[0][from].x == from && mail->in[1][from].x == from;
    out[rank * THREADS + (int)threadIdx.x] = right;
    ptx_cluster_arrive(); /* nobody leaves while another still sends */
    ptx_cluster_wait();
}

static void test_cluster(void **) {
    static const char *const orders[] = {"0", "1", "5", "6", "7"};
    for (const char *order : orders) {
        setenv("EMULATED_ORDER", order, 1);
        start(exchange, RANKS);
        for (int i = 0; i < RANKS * THREADS; i++)
            assert_int_equal(out[i], RANKS);
    }
    unsetenv("EMULATED_ORDER");
}

static float4 source[THREADS];

static void copies() {
    float4 *const shared = (float4 *)ptx_dynamic_shared();
    shared[threadIdx.x] = make_float4(-1, -1, -1, -1);
    ptx_copy_async(&shared[threadIdx.x], &source[threadIdx.x]);
    ptx_copy_commit();
    const float early = shared[threadIdx.x].x;
    ptx_copy_wait<0>();
    out[threadIdx.x] = early < 0.0f && shared[threadIdx.x].x == (float)threadIdx.x;
}

static void test_copies(void **) {
    for (int i = 0; i < THREADS; i++)
        source[i] = make_float4((float)i, 0, 0, 0);
    start(copies, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(out[i], 1);
}

/* ---- kernels that are wrong ---- */

static void parts_of_a_warp() {
    if (threadIdx.x % 32 < 16)
        __syncwarp();
    else
        (void)__shfl_sync(~0u, 1, 0);
}

static void leaves_its_warp() {
    if (threadIdx.x % 32)
        __syncwarp();
}

static void waits_for_nobody() {
    uint64_t *const barrier = (uint64_t *)ptx_dynamic_shared();
    if (threadIdx.x == 0)
        ptx_barrier_init(barrier, 2);
    __syncthreads();
    if (threadIdx.x == 0)
        ptx_peer_arrive(barrier, 0);
    ptx_barrier_wait(barrier, 0);
}

static void arrives_twice() {
    uint64_t *const barrier = (uint64_t *)ptx_dynamic_shared();
    if (threadIdx.x)
        return;
    ptx_barrier_init(barrier, 2);
    ptx_barrier_expect(barrier, 16);
    ptx_barrier_expect(barrier, 0);
    ptx_barrier_expect(barrier, 0);
}

static void no_barrier_there() {
    ptx_barrier_wait((uint64_t *)ptx_dynamic_shared(), 0);
}

static void forgets_its_copy() {
    ptx_copy_async((float4 *)ptx_dynamic_shared() + threadIdx.x, &source[threadIdx.x]);
    ptx_copy_commit();
}

static void reaches_too_far() {
    (void)*ptx_peer((int *)ptx_dynamic_shared() + 256, 0);
}

static void forgets_its_phase() {
    uint64_t *const barrier = (uint64_t *)ptx_dynamic_shared();
    if (threadIdx.x == 0) {
        ptx_barrier_init(barrier, 2);
        ptx_barrier_expect(barrier, 0);
    }
}

static void sends_and_goes() {
    struct mail *const mail = (struct mail *)ptx_dynamic_shared();
    if (threadIdx.x)
        return;
    ptx_barrier_init(&mail->barrier[0], 1);
    ptx_peer_store_async(&mail->in[0][0], make_uint4(1, 2, 3, 4), &mail->barrier[0], 0);
}

/* What the device says before it ends the program, in a process of its own. */
static void assert_found_out(void (*kernel)(), const char *words) {
    int pipes[2];
    char said[4096] = "";
    size_t length = 0;
    int status = 0;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (!child) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        start(kernel, 1);
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t got; (got = read(pipes[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || !strstr(said, words))
        fail_msg("not found out (%s): status %d, said \"%s\"", words, status, said);
}

static void test_found_out(void **) {
    assert_found_out(parts_of_a_warp, "lanes of a warp in different operations");
    assert_found_out(leaves_its_warp, "part of a warp in __syncwarp");
    assert_found_out(waits_for_nobody, "wait for ever");
    assert_found_out(waits_for_nobody, "waits in mbarrier.try_wait");
    assert_found_out(arrives_twice, "arrived at too often");
    assert_found_out(no_barrier_there, "no mbarrier where one is used");
    assert_found_out(forgets_its_copy, "copies on their way");
    assert_found_out(reaches_too_far, "no such address in another block");
    assert_found_out(sends_and_goes, "a store arrives in a block that has ended");
    assert_found_out(forgets_its_phase, "a phase of an mbarrier half done");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),   cmocka_unit_test(test_warp),
        cmocka_unit_test(test_cluster),   cmocka_unit_test(test_copies),
        cmocka_unit_test(test_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
