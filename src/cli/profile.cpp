#include "driver/profile.h"

#include "cli/report.h"
#include "cli/verbs.h"
#include "driver/files.h"
#include "driver/machines.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostRanks = 256;

Checked<std::int64_t> ranks_of(const CommandLine& line) {
  const std::optional<std::string> given = line.value("ranks");
  if (!given) return std::int64_t{0};
  const bool digits = given->find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t ranks = digits && given->size() <= 4 ? std::stoll(*given) : 0;
  if (ranks >= 1 && ranks <= kMostRanks) return ranks;
  return make_diag(DiagCode::U109, {{"flag", "--ranks"},
                                    {"text", *given},
                                    {"wanted", "from 1 to " + std::to_string(kMostRanks)}});
}

std::string print_summary(const Machine& machine, const std::string& path) {
  const auto in_gbs = [](double rate) {
    std::string text = std::to_string(rate * 1e-9);
    return text.substr(0, text.find('.') + 2) + " GB/s";
  };
  Rows rows = {{"memory", in_gbs(machine.processor.memory_bandwidth) + " a rank"},
               {"copies", in_gbs(machine.transports.front().bandwidth) + " a rank, start " +
                              print_seconds(machine.transports.front().start.seconds())},
               {"signal", print_seconds(machine.levels.front().latency.seconds())},
               {"task", print_seconds(machine.processor.kernel_start.seconds())}};
  for (const LeafRate& rate : machine.rates) {
    if (rate.peak == 0 || rate.dtype == "*") continue;
    const std::string text = std::to_string(rate.peak * 1e-9);
    rows.emplace_back(rate.leaf + " " + rate.dtype, text.substr(0, text.find('.')) + " GF/s");
  }
  return machine.summary + "\n" + print_rows(rows) + "written to `" + path + "`\n";
}

}  // namespace

Checked<int> profile_host(const CommandLine& line) {
  if (!line.words.empty()) {
    return make_diag(DiagCode::U111, {{"verb", line.verb},
                                      {"what", "computer, the one it runs on"},
                                      {"text", line.words.front()}});
  }
  HP_REQUIRE_OK(check_json(line));
  const std::optional<std::string> path = line.value("output-file");
  if (path) HP_REQUIRE_OK(check_writable(*path));
  HP_TRY(const std::int64_t ranks, ranks_of(line));
  const Machine machine = profile_cpu(
      {.ranks = ranks, .progress = [](std::string_view stage) { show_progress(stage); }});
  const std::string text = print(machine);
  if (path) HP_REQUIRE_OK(write_text(*path, text));
  Json json = start_json(line);
  json.set("fingerprint", fingerprint(machine)).set(path ? "file" : "machine", path ? *path : text);
  HP_REQUIRE_OK(show_results(line, path ? print_summary(machine, *path) : text, json));
  return kDone;
}

}  // namespace harpe::cli
