/* replaced by the first real file */ typedef int topp_bench_placeholder;
