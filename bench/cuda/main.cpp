// The harness of the GPU kernels: checks their results, and compares their speed with NVIDIA's
// libraries in the same run. `harpe-kernel-bench --help`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bench/cuda/bench.h"
#include "bench/cuda/compile.h"
#include "bench/cuda/gemm_shapes.h"

namespace harpe::bench {
namespace {

constexpr const char* kAbout =
    "Checks and times Harpe's GPU kernels on the GPUs of this machine.\n"
    "\n"
    "Checks compare with a reference in f64, within a bound derived for each element; outputs and\n"
    "whatever lies around them are poisoned before every launch; data arrives while kernels run,\n"
    "in random order after random pauses. Times are medians of calls between events, the L2 cache\n"
    "overwritten before each, ours and the library's in turns in one queue.\n"
    "\n"
    "Tables go to standard output, progress to standard error. Exit code: 0 well, 1 a check\n"
    "failed, 2 usage, 3 the GPU or a library failed.\n";

std::string experiment_help() {
  std::string text = "EXPERIMENTS\n";
  for (const Experiment& experiment : experiments()) {
    text +=
        fmt::format("  {:<10} {:<10} {}\n", experiment.name, experiment.family, experiment.help);
  }
  return text +
         "  all                   every one of them\n"
         "  compile               no run: kernels named like --filter into --cache, no GPU\n";
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("experiment", options.command, "what to run (see below)")->required();
  app.add_option("--family", options.family, "only of this family of kernels");
  app.add_option("--filter", options.filter, "only cases whose name holds this text");
  app.add_option("--size", options.sizes,
                 "gemm, few_rows: MxNxK or MxNxKnk (B with rows along k) instead of the usual "
                 "cases; may be repeated")
      ->check([](const std::string& text) {
        return read_size(text) ? std::string()
                               : fmt::format("`{}` is neither MxNxK nor MxNxKnk", text);
      });
  app.add_option("--json", options.json, "write a line of JSON for each case to this file");
  app.add_option("--seed", options.seed, "of all random choices");
  app.add_option("--repeat", options.repeat, "launches of a repeated check");
  app.add_option("--rounds", options.rounds, "timed calls of each contender");
  app.add_option("--panels", options.panels,
                 "few_rows: panels that a GEMM's rows are in, as the rows of so many ranks are")
      ->check(CLI::Range(1, 16));
  app.add_option("--budget", options.budget, "start no case after so many seconds");
  app.add_option("--device", options.device, "the first GPU; the next one is its peer");
  app.add_option("--cache", options.cache, "folder of compiled kernels; none: compile anew");
  app.add_option("--nvrtc", options.nvrtc, "file of the run-time compiler");
  app.add_option("--cublaslt", options.cublaslt, "file of cuBLASLt");
  app.add_option("--cudnn", options.cudnn, "file of cuDNN 9");
  app.add_option("--source", options.source, "where arriving chunks come from")
      ->check(CLI::IsMember({"host", "peer"}));
  app.add_flag("--quick", options.quick, "a fifth of the cases and repetitions");
  app.add_flag("--all-variants", options.all_variants,
               "time every shipped variant, and compare the choice with the best");
}

int run(const Options& options) {
  if (options.command == "compile") return compile_all(options);
  const auto chosen = [&](const Experiment& experiment) {
    return (options.command == "all" || options.command == experiment.name) &&
           (options.family.empty() || options.family == experiment.family);
  };
  if (std::ranges::none_of(experiments(), chosen)) {
    fmt::print(stderr, "no experiment is called `{}`; try --help\n", options.command);
    return 2;
  }
  Bench bench(options);
  for (const Experiment& experiment : experiments()) {
    if (chosen(experiment)) experiment.run(bench);
  }
  bench.report().print_tables();
  return bench.report().failed() ? 1 : 0;
}

}  // namespace
}  // namespace harpe::bench

int main(int argc, char** argv) {
  harpe::bench::Options options;
  CLI::App app(harpe::bench::kAbout, "harpe-kernel-bench");
  app.footer(harpe::bench::experiment_help());
  harpe::bench::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  return harpe::bench::run(options);
}
