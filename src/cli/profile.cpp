#include "profile/profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "compile/machines.h"
#include "io/files.h"
#include "profile/profile_gpu.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostProfiled = 256;

Checked<std::int64_t> ranks_of(const CommandLine& line) {
  const std::optional<std::string> given = line.value("ranks");
  if (!given) return std::int64_t{0};
  const bool digits = given->find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t ranks = digits && given->size() <= 4 ? std::stoll(*given) : 0;
  if (ranks >= 1 && ranks <= kMostProfiled) return ranks;
  return make_diag(DiagCode::U109, {{"flag", "--ranks"},
                                    {"text", *given},
                                    {"wanted", "from 1 to " + std::to_string(kMostProfiled)}});
}

std::string in_gbs(double rate) { return fmt::format("{:.1f} GB/s", rate * 1e-9); }

std::string print_start(const TransportRate& copies) {
  return in_gbs(copies.bandwidth) + " a rank, start " + print_seconds(copies.start.seconds());
}

Rows rows_of(const Machine& machine) {
  Rows rows = {{"memory", in_gbs(machine.processor.memory_bandwidth) + " a rank"},
               {"copies", print_start(machine.transports.front())},
               {"signal", print_seconds(machine.levels.front().latency.seconds())},
               {"task", print_seconds(machine.processor.kernel_start.seconds())}};
  for (const LeafRate& rate : machine.rates) {
    if (rate.peak == 0 || rate.dtype == "*" || rate.from.origin != Origin::Measured) continue;
    constexpr double kMany = 1e13;
    rows.emplace_back(rate.leaf + " " + rate.dtype,
                      rate.peak < kMany ? fmt::format("{:.0f} GF/s", rate.peak * 1e-9)
                                        : fmt::format("{:.0f} TF/s", rate.peak * 1e-12));
  }
  return rows;
}

// Figures for which the GPUs' machine has no line.
Rows rows_of(const cuda::profile::GpuFigures& figures) {
  if (!figures.links) return {{"links", "assumed: one GPU has none to measure"}};
  const cuda::profile::LinkFigures& links = *figures.links;
  const auto largest = [](const std::vector<cuda::profile::TimedBytes>& times) {
    return in_gbs(times.back().bytes / times.back().seconds);
  };
  Rows rows = {
      {"one pair", largest(links.engine_pair) + " written, " + in_gbs(links.engine_pull) +
                       " read, by a copy engine"},
      {"ring", largest(links.engine_ring) + " by copy engines, " + largest(links.push_ring) +
                   " written and " + largest(links.pull_ring) + " read by kernels"},
      {"all to all", in_gbs(links.engine_all_to_all) + " a port"},
      {"all to one", in_gbs(links.engine_incast) + " into its port"}};
  std::string curve;
  for (const auto& [blocks, rate] : links.push_blocks) {
    curve += fmt::format("{}{}: {:.0f}", curve.empty() ? "" : ", ", blocks, rate * 1e-9);
  }
  rows.emplace_back("by blocks", curve + " GB/s");
  rows.emplace_back("at once", fmt::format("a GEMM at {:.0f} % of its rate beside copies, "
                                           "copies at {:.0f} % beside a GEMM",
                                           100 * figures.interference->product,
                                           100 * figures.interference->copies));
  return rows;
}

Json to_json(const cuda::profile::LibraryFigures& libraries) {
  Json products = Json::array();
  for (const cuda::profile::LeafFigure& one : libraries.products) {
    products.push_back(Json{{"rows", one.rows},
                            {"columns", one.columns},
                            {"depth", one.depth},
                            {"us", one.seconds * 1e6}});
  }
  Json collectives = Json::array();
  for (const cuda::profile::TimedCollective& one : libraries.collectives) {
    collectives.push_back(Json{{"kind", harpe::print(kind_of(one.pattern))},
                               {"bytes", one.bytes},
                               {"us", one.seconds * 1e6}});
  }
  return {{"versions", libraries.versions},
          {"products", std::move(products)},
          {"collectives", std::move(collectives)}};
}

Json to_json(const cuda::profile::GpuFigures& figures) {
  Json json = Json::object();
  json["gpu"] = figures.gpu;
  json["gpus"] = figures.gpus;
  json["libraries"] = figures.libraries ? to_json(*figures.libraries) : Json();
  json["no_libraries"] = figures.no_libraries.empty() ? Json() : Json(figures.no_libraries);
  if (!figures.links) return json;
  const cuda::profile::LinkFigures& links = *figures.links;
  const auto times = [](const std::vector<cuda::profile::TimedBytes>& all) {
    Json points = Json::array();
    for (const auto& [bytes, seconds] : all) {
      points.push_back(Json{{"bytes", bytes}, {"us", seconds * 1e6}});
    }
    return points;
  };
  Json blocks = Json::array();
  for (const auto& [count, rate] : links.push_blocks) {
    blocks.push_back(Json{{"blocks", count}, {"gbs", rate * 1e-9}});
  }
  json["engine_pair"] = times(links.engine_pair);
  json["engine_ring"] = times(links.engine_ring);
  json["push_ring"] = times(links.push_ring);
  json["pull_ring"] = times(links.pull_ring);
  json["push_blocks"] = std::move(blocks);
  json["engine_pull_gbs"] = links.engine_pull * 1e-9;
  json["engine_all_to_all_gbs"] = links.engine_all_to_all * 1e-9;
  json["engine_incast_gbs"] = links.engine_incast * 1e-9;
  json["product_beside_copies"] = figures.interference->product;
  json["copies_beside_product"] = figures.interference->copies;
  return json;
}

// A profile: the machine, further rows of the summary, and further JSON figures.
struct Profiled {
  Machine machine;
  Rows rows;
  std::optional<Json> figures = {};
};

Checked<Profiled> profile_backend(const CommandLine& line) {
  HP_TRY(const Backend backend, backend_of(line));
  HP_TRY(const std::int64_t ranks, ranks_of(line));
  const auto progress = [](std::string_view stage) { show_progress(stage); };
  if (backend == Backend::Cpu) {
    const Machine machine =
        profile_cpu({.ranks = ranks, .quick = line.has("quick"), .progress = progress});
    return Profiled{.machine = machine, .rows = rows_of(machine)};
  }
  GpuProfileRequest request{.gpus = ranks, .quick = line.has("quick"), .progress = progress};
  HP_TRY(request.places, cuda_places_of(line));
  HP_TRY(const GpuProfile profile, profile_gpus(request));
  Rows rows = rows_of(profile.machine);
  for (auto& row : rows_of(profile.figures)) rows.push_back(std::move(row));
  return Profiled{
      .machine = profile.machine, .rows = std::move(rows), .figures = to_json(profile.figures)};
}

}  // namespace

Checked<int> profile_host(const CommandLine& line) {
  if (!line.words.empty()) {
    return make_diag(DiagCode::U111, {{"verb", line.verb},
                                      {"what", "computer, the one it runs on"},
                                      {"text", line.words.front()}});
  }
  HP_REQUIRE_OK(check_places(line));
  const std::optional<std::string> path = line.value("output-file");
  HP_TRY(const Profiled profiled, profile_backend(line));
  const Machine& machine = profiled.machine;
  const std::string text = print(machine);
  HP_REQUIRE_OK(write_file_of(line, "output-file", text));
  Json json = start_json(line);
  json["fingerprint"] = fingerprint(machine);
  json[path ? "file" : "machine"] = path ? *path : text;
  if (profiled.figures) json["figures"] = *profiled.figures;
  const std::string summary = path ? machine.summary + "\n" + print_rows(profiled.rows) : text;
  HP_REQUIRE_OK(show_results(line, summary, json));
  return kDone;
}

}  // namespace harpe::cli
