#include "bench/gbench.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace {

void run_block(benchmark::State &state, const gbench_case *the_case) {
    if (the_case->refused) {
        state.SkipWithError(the_case->refused);
        return;
    }
    for (auto step : state) {
        (void)step;
        gbench_block block = {};
        the_case->block(the_case->context, &block);
        if (block.refused) {
            state.SkipWithError(block.refused);
            break;
        }
        state.SetIterationTime(block.seconds);
        for (size_t i = 0; i < block.counter_count; i++)
            state.counters[block.counter_names[i]] = block.counters[i];
    }
}

/* The library keeps its flags in globals that only Initialize() sets, and a pointer to the first
 * word for as long as it reports. */
void set_flags(const gbench_run &run) {
    static std::vector<std::string> texts;
    texts = {"bench_topp", "--benchmark_enable_random_interleaving=true"};
    for (size_t i = 0; i < run.flag_count; i++)
        texts.push_back(run.flags[i]);
    std::vector<char *> arguments;
    for (auto &text : texts)
        arguments.push_back(&text[0]);
    int count = (int)arguments.size();
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
}

void execute(const gbench_run &run, std::ofstream &out) {
    set_flags(run);
    for (size_t i = 0; i < run.context_count; i++)
        benchmark::AddCustomContext(run.context_keys[i], run.context_values[i]);
    for (size_t i = 0; i < run.count; i++) {
        const gbench_case *the_case = &run.cases[i];
        benchmark::RegisterBenchmark(
            the_case->name, [the_case](benchmark::State &state) { run_block(state, the_case); })
            ->Iterations(1)
            ->Repetitions(the_case->refused ? 1 : the_case->repetitions)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&out);
    reporter.SetErrorStream(&out);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::ClearRegisteredBenchmarks();
}

} // namespace

extern "C" int gbench_execute(const gbench_run *run, char *why, size_t why_bytes) {
    try {
        std::ofstream out(run->json_path, std::ios::trunc);
        if (out)
            execute(*run, out);
        out.flush();
        if (out)
            return 0;
        std::snprintf(why, why_bytes, "cannot write %s", run->json_path);
    } catch (const std::exception &exception) {
        std::snprintf(why, why_bytes, "Google Benchmark: %s", exception.what());
    } catch (...) {
        std::snprintf(why, why_bytes, "Google Benchmark: unknown exception");
    }
    return -1;
}
