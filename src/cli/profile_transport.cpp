#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/launch.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/machines.h"
#include "io/files.h"
#include "profile/profile_transport.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostSenders = 64;
constexpr std::int64_t kMostProfiledNodes = 1 << 16;
constexpr std::string_view kUsualBase = "h200x8";
constexpr std::int64_t kUsualNodes = 16;
// Long enough to start the other process by hand, and for one figure of a slow provider.
constexpr std::chrono::minutes kPatience{5};

// The rendezvous of the processes: from the launcher, or from `--meet` and `--rank`.
Checked<transport::Meeting> meeting_of(const CommandLine& line) {
  transport::Meeting meeting{.address = line.value("meet").value_or(""),
                             .interface = line.value("interface").value_or(""),
                             .limit = kPatience,
                             .warn = print_warning};
  HP_TRY(const std::optional<processes::Launch> launch, launch_of_environment());
  if (launch) {
    if (meeting.address.empty()) meeting.address = launch->address;
    if (meeting.interface.empty()) meeting.interface = launch->interface;
    meeting.secret = launch->secret;
    meeting.rank = launch->rank;
    meeting.ranks = launch->ranks;
    return meeting;
  }
  const std::optional<std::string> rank = line.value("rank");
  if (meeting.address.empty() || !rank) {
    return make_diag(DiagCode::U110,
                     {{"verb", "profile --transport"},
                      {"what",
                       "another process to put to: `--launch 2` on this machine, a "
                       "launcher, or `--meet HOST:PORT` with `--rank 0` here and `--rank 1` "
                       "on the other host"}});
  }
  HP_TRY(const std::int64_t ranks,
         parse_count("--ranks", line.value("ranks").value_or("2"), 2, kMostSenders));
  HP_TRY(const std::int64_t own, parse_count("--rank", *rank, 0, ranks - 1));
  meeting.secret = secret_of_environment();
  meeting.rank = static_cast<int>(own);
  meeting.ranks = static_cast<int>(ranks);
  return meeting;
}

std::string print_rate(double bytes_per_second) {
  return fmt::format("{:.3g} GB/s", bytes_per_second * 1e-9);
}

Rows rows_of(const TransportFigures& figures, const Machine& machine) {
  const MachineLevel& level = machine.levels.back();
  const double small = figures.post > 0 ? 1 / figures.post : 0;
  return {
      {"put", print_seconds(figures.post) + " each of many, " +
                  fmt::format("{:.0f} a second; ", small) + print_seconds(figures.one_way) +
                  " one way with its word"},
      {"word", print_seconds(figures.signal) + " each of many; " + print_seconds(figures.flag) +
                   " one way"},
      {"drain", print_seconds(figures.quiet) + " behind one put, " +
                    print_seconds(figures.quiet_of_many) + fmt::format(" behind {}", kOutstanding)},
      {"bandwidth", print_rate(level.bandwidth)}};
}

std::string print_policies(const TransportFigures& figures) {
  std::vector<std::vector<std::string>> lines = {
      {"fence", "ordering", "one way", "burst", "of puts alone", "drains"}};
  for (const PolicyFigures& one : figures.policies) {
    const std::string name(print(one.policy));
    if (one.refusal) {
      lines.push_back({name, "refused", "", "", "", ""});
      continue;
    }
    lines.push_back({name, std::string(print(one.ordering)), print_seconds(one.one_way),
                     print_seconds(one.both), fmt::format("{:.0f} %", 100 * one.puts / one.both),
                     fmt::format("{:.0f}", one.quiets)});
  }
  return print_table(lines);
}

std::string print_report(const TransportFigures& figures, const Machine& machine,
                         const Recommendation& choice) {
  std::string text = fmt::format("{}, {} processes: {}\n", figures.provider, figures.ranks,
                                 transport::describe(figures.given));
  text += print_rows(rows_of(figures, machine)) + "\n" + print_policies(figures);
  text += fmt::format("\nchoose `fence {}`: {}\n", print(choice.policy), choice.reason);
  return text;
}

Json to_json(const TransportFigures& figures) {
  Json sizes = Json::array();
  for (const auto& [bytes, seconds] : figures.sizes) {
    sizes.push_back(Json{{"bytes", bytes}, {"us", seconds * 1e6}});
  }
  Json policies = Json::array();
  for (const PolicyFigures& one : figures.policies) {
    Json json = Json::object();
    json["policy"] = print(one.policy);
    json["fence"] = print(one.policy);
    if (one.refusal) {
      json["refused"] = print_diag(*one.refusal);
    } else {
      json["ordering"] = print(one.ordering);
      json["one_way_us"] = one.one_way * 1e6;
      json["puts_us"] = one.puts * 1e6;
      json["both_us"] = one.both * 1e6;
      json["drains"] = one.quiets;
    }
    policies.push_back(std::move(json));
  }
  return {{"provider", figures.provider},
          {"given", transport::describe(figures.given)},
          {"ranks", figures.ranks},
          {"post_us", figures.post * 1e6},
          {"word_us", figures.signal * 1e6},
          {"flag_us", figures.flag * 1e6},
          {"one_way_us", figures.one_way * 1e6},
          {"drain_us", figures.quiet * 1e6},
          {"drain_of_many_us", figures.quiet_of_many * 1e6},
          {"sizes", std::move(sizes)},
          {"policies", std::move(policies)}};
}

}  // namespace

Checked<int> profile_transport(const CommandLine& line) {
  HP_REQUIRE_OK(check_places(line));
  const std::optional<std::string> path = line.value("output-file");
  HP_TRY(const std::int64_t nodes,
         parse_count("--nodes", line.value("nodes").value_or(std::to_string(kUsualNodes)), 2,
                     kMostProfiledNodes));
  HP_TRY(const Machine base, load_machine(line.value("machine").value_or(std::string(kUsualBase))));
  if (const std::optional<std::string> count = line.value("launch")) {
    return launch_ranks(line, *count);
  }
  HP_TRY(const transport::Meeting meeting, meeting_of(line));
  const std::string provider = line.value("provider").value_or("tcp");
  HP_TRY(const TransportFigures figures,
         measure_transport({.provider = provider == "tcp" ? "tcp;ofi_rxm" : provider,
                            .interface = meeting.interface,
                            .meeting = meeting,
                            .quick = line.has("quick"),
                            .progress = [](std::string_view stage) { show_progress(stage); }}));
  if (meeting.rank != 0) return kDone;
  const std::string where = meeting.interface.empty() ? "any interface" : meeting.interface;
  HP_TRY(const Machine machine, machine_of(figures, base, nodes, where));
  const Recommendation choice = recommend(figures);
  HP_REQUIRE_OK(write_file_of(line, "output-file", print(machine)));
  Json json = start_json(line);
  json["fingerprint"] = fingerprint(machine);
  json[path ? "file" : "machine"] = path ? *path : print(machine);
  json["figures"] = to_json(figures);
  json["policy"] = print(choice.policy);
  json["reason"] = choice.reason;
  HP_REQUIRE_OK(show_results(line, print_report(figures, machine, choice), json));
  return kDone;
}

}  // namespace harpe::cli
