// The only C++ of the project: bench/gbench.h on Google Benchmark.
#include "bench/gbench.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Writes strict JSON always, and shows the runs as the library would when the user asked for it.
class Reporter : public benchmark::BenchmarkReporter {
  public:
    Reporter(std::ostream *json, benchmark::BenchmarkReporter *shown) : shown_(shown) {
        json_.SetOutputStream(json);
        json_.SetErrorStream(json);
    }

    bool ReportContext(const Context &context) override {
        return json_.ReportContext(context) && (!shown_ || shown_->ReportContext(context));
    }

    void ReportRuns(const std::vector<Run> &runs) override {
        // A relative spread of a counter that is always 0 is 0 / 0: no JSON number.
        std::vector<Run> finite;
        for (const Run &run : runs) {
            Run copy = run;
            for (auto counter = copy.counters.begin(); counter != copy.counters.end();)
                counter = std::isfinite(counter->second.value) ? std::next(counter)
                                                               : copy.counters.erase(counter);
            if (std::isfinite(copy.real_accumulated_time) &&
                std::isfinite(copy.cpu_accumulated_time))
                finite.push_back(copy);
        }
        if (finite.empty())
            return;
        json_.ReportRuns(finite);
        if (shown_)
            shown_->ReportRuns(finite);
    }

    void Finalize() override {
        json_.Finalize();
        if (shown_)
            shown_->Finalize();
    }

  private:
    benchmark::JSONReporter json_;
    benchmark::BenchmarkReporter *shown_;
};

void Measure(benchmark::State &state, const gbench_run *run, size_t cell) {
    for (auto _ : state) {
        if (run->cells[cell].skip) {
            state.SkipWithError(run->cells[cell].skip);
            break;
        }
        if (run->stop && *run->stop) {
            state.SkipWithError("interrupted");
            break;
        }
        gbench_block block = {};
        run->measure(run->context, cell, &block);
        block.error[sizeof block.error - 1] = '\0';
        if (block.error[0]) {
            state.SkipWithError(block.error);
            break;
        }
        state.SetIterationTime(block.seconds);
        for (size_t i = 0; i < block.counter_count && i < GBENCH_MOST_COUNTERS; i++)
            if (std::isfinite(block.counters[i].value))
                state.counters[block.counters[i].name] = block.counters[i].value;
    }
}

bool Starts(const char *text, const char *prefix) {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// The library parses its flags from an argv of its own and prints about those it does not know. It
// keeps a pointer to the first word, the program's name, for as long as it reports.
void SetFlags(const gbench_run *run, bool *shown) {
    static std::vector<std::string> texts;
    texts = {"bench_topp"};
    texts.push_back(run->interleave ? "--benchmark_enable_random_interleaving=true"
                                    : "--benchmark_enable_random_interleaving=false");
    for (size_t i = 0; i < run->flag_count; i++) {
        texts.push_back(run->flags[i]);
        *shown = *shown || Starts(run->flags[i], "--benchmark_format") ||
                 Starts(run->flags[i], "--benchmark_counters_tabular") ||
                 Starts(run->flags[i], "--benchmark_display_aggregates_only");
    }
    std::vector<char *> argv;
    for (std::string &text : texts)
        argv.push_back(&text[0]);
    argv.push_back(nullptr);
    int argc = static_cast<int>(texts.size());
    benchmark::Initialize(&argc, argv.data());
    static bool context_added = false; // the library refuses a key that it has
    for (const char *const *pair = run->context_pairs; pair && pair[0] && !context_added; pair += 2)
        benchmark::AddCustomContext(pair[0], pair[1]);
    context_added = true;
}

void Execute(const gbench_run *run) {
    std::ofstream json(run->json_path);
    if (!json)
        throw std::runtime_error("cannot be opened for writing");
    json.imbue(std::locale::classic());
    bool shown = false;
    SetFlags(run, &shown);
    benchmark::ClearRegisteredBenchmarks();
    for (size_t i = 0; i < run->count; i++) {
        auto *registered = benchmark::RegisterBenchmark(
            run->cells[i].name, [run, i](benchmark::State &state) { Measure(state, run, i); });
        registered->Iterations(1)->UseManualTime()->Unit(benchmark::kNanosecond);
        registered->Repetitions(run->cells[i].skip ? 1 : run->cells[i].repetitions);
    }
    std::unique_ptr<benchmark::BenchmarkReporter> display;
    if (shown)
        display.reset(benchmark::CreateDefaultDisplayReporter());
    Reporter reporter(&json, display.get());
    benchmark::RunSpecifiedBenchmarks(&reporter, std::string("."));
    benchmark::ClearRegisteredBenchmarks();
    json.close();
    if (!json)
        throw std::runtime_error("cannot be written whole");
}

} // namespace

int gbench_execute(const gbench_run *run, char *why, size_t why_bytes) {
    try {
        Execute(run);
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(why, why_bytes, "%s: %s", run->json_path, error.what());
    } catch (...) {
        std::snprintf(why, why_bytes, "%s: unknown failure", run->json_path);
    }
    return -1;
}

bool gbench_flag_allowed(const char *argument) {
    static const char *const names[] = {
        "--benchmark_format",           "--benchmark_out",
        "--benchmark_out_format",       "--benchmark_color",
        "--benchmark_counters_tabular", "--benchmark_report_aggregates_only",
        "--benchmark_time_unit",        "--benchmark_display_aggregates_only",
    };
    size_t length = std::strcspn(argument, "=");
    for (const char *name : names)
        if (length == std::strlen(name) && Starts(argument, name))
            return true;
    return false;
}
