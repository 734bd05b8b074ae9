/* Two blocks of a cluster send each other 528 bytes by bulk copy, as `exact` does; every byte is
 * checked. Exit code 0: all arrived. memcheck of CUDA 13.0 calls the copies invalid all the same
 * ("not located in remote CTA"); ci/gpu-test runs it both ways. */
#include <cstdint>
#include <cstdio>

constexpr int bytes = 528, blocks = 2;

struct alignas(16) room {
    char in[blocks][bytes];
    char out[bytes];
    alignas(8) uint64_t barrier;
};

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ uint32_t address(const void *shared) {
    return (uint32_t)__cvta_generic_to_shared(shared);
}

__device__ void send(room *s, void *to, uint32_t rank) {
    asm volatile("{\n.reg .b32 peer, there;\n"
                 "mapa.shared::cluster.u32 peer, %0, %4;\n"
                 "mapa.shared::cluster.u32 there, %1, %4;\n"
                 "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [peer], %3;\n"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], "
                 "[%2], %3, [peer];\n}" ::"r"(address(&s->barrier)),
                 "r"(address(to)), "r"(address(s->out)), "r"(bytes), "r"(rank)
                 : "memory");
}

__global__ void __cluster_dims__(blocks, 1, 1) exchange(unsigned *wrong) {
    __shared__ room s;
    uint32_t rank, done = 0;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&s.barrier)),
                     "r"(blocks));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    for (int i = threadIdx.x; i < bytes; i += blockDim.x)
        s.out[i] = (char)(i + rank * 7);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    cluster_sync();
    if (threadIdx.x < blocks)
        send(&s, s.in[rank], threadIdx.x);
    while (!done)
        asm volatile("{\n.reg .pred q;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 q, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, q;\n}"
                     : "=r"(done)
                     : "r"(address(&s.barrier))
                     : "memory");
    unsigned mine = 0;
    for (int r = 0; r < blocks; r++)
        for (int i = threadIdx.x; i < bytes; i += blockDim.x)
            mine += s.in[r][i] != (char)(i + r * 7);
    atomicAdd(wrong, mine);
    cluster_sync();
}

int main() {
    unsigned *device = nullptr, wrong = 1;
    cudaMalloc(&device, sizeof wrong);
    cudaMemset(device, 0, sizeof wrong);
    exchange<<<blocks, 64>>>(device);
    const cudaError_t error = cudaMemcpy(&wrong, device, sizeof wrong, cudaMemcpyDeviceToHost);
    printf("%u wrong bytes, %s\n", wrong, cudaGetErrorString(error));
    return error != cudaSuccess || wrong != 0;
}
