#include <nlohmann/json.hpp>

#include "run/doctor.h"

#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out.empty() ? "none" : out;
}

Rows rows_of(const HostFacts& host) {
  std::vector<std::string> products;
  for (const auto& [type, who] : host.products) products.push_back(type + " by " + who);
  Rows rows = {{"CPU", host.name}, {"vectors", join(host.vectors)}, {"GEMMs", join(products)}};
  if (host.free_bytes) rows.emplace_back("memory", print_bytes(*host.free_bytes) + " free");
  return rows;
}

std::string print_gpus(const std::vector<GpuFacts>& gpus) {
  std::vector<std::vector<std::string>> lines = {
      {"GPU", "name", "memory", "free", "SMs", "capability", "reaches"}};
  for (const GpuFacts& gpu : gpus) {
    std::vector<std::string> reached;
    for (std::size_t other = 0; other < gpu.peers.size(); ++other) {
      const bool is_other = static_cast<std::int64_t>(other) != gpu.id;
      if (is_other && gpu.peers[other]) reached.push_back(std::to_string(other));
    }
    lines.push_back({std::to_string(gpu.id), gpu.name, print_bytes(gpu.memory_bytes),
                     gpu.free_bytes ? print_bytes(*gpu.free_bytes) : "-",
                     std::to_string(gpu.multiprocessors), gpu.capability, join(reached)});
  }
  std::string out = print_table(lines);
  for (const GpuFacts& gpu : gpus) {
    if (gpu.problem) out += "  GPU " + std::to_string(gpu.id) + ": " + *gpu.problem + "\n";
  }
  return out;
}

std::string print_transports(const std::vector<TransportFacts>& transports) {
  std::vector<std::vector<std::string>> lines = {{"transport", "signals come by", "returned"}};
  std::string absent;
  for (const TransportFacts& transport : transports) {
    if (transport.is_there) {
      lines.push_back({transport.name + (transport.is_tested ? "" : " (untested)"),
                       transport.ordering, transport.given});
    } else {
      absent += (absent.empty() ? "not here: " : ", ") + transport.name;
    }
  }
  const std::string asked = transports.empty() ? "" : "asked of each: " + transports.back().asked;
  return print_table(lines) + asked + "\n" + absent + (absent.empty() ? "" : "\n");
}

std::string print_libraries(const std::vector<LibraryFacts>& libraries) {
  std::vector<std::vector<std::string>> lines = {{"library", "version", "where"}};
  std::string missing;
  for (const LibraryFacts& library : libraries) {
    lines.push_back({library.name, library.version.empty() ? "-" : library.version,
                     library.path.empty() ? "-" : library.path});
    if (library.problem)
      missing += "no " + library.name + ": " + library.cost + "\n  " + *library.problem + "\n";
  }
  return print_table(lines) + (missing.empty() ? "" : "\n" + missing);
}

Json to_json(const HostFacts& host) {
  Json products = Json::object();
  for (const auto& [type, who] : host.products) products[type] = who;
  return {{"name", host.name},
          {"cores", host.cores},
          {"vectors", host.vectors},
          {"free_bytes", host.free_bytes ? Json(*host.free_bytes) : Json()},
          {"products", std::move(products)}};
}

Json to_json(const GpuFacts& gpu) {
  Json peers = Json::array();
  for (const bool can : gpu.peers) peers.emplace_back(can);
  return {{"gpu", gpu.id},
          {"name", gpu.name},
          {"capability", gpu.capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"free_bytes", gpu.free_bytes ? Json(*gpu.free_bytes) : Json()},
          {"peers", std::move(peers)},
          {"problem", gpu.problem ? Json(*gpu.problem) : Json()}};
}

Json to_json(const TransportFacts& transport) {
  return {{"name", transport.name},
          {"tested", transport.is_tested},
          {"present", transport.is_there},
          {"asked", transport.asked},
          {"given", transport.is_there ? Json(transport.given) : Json()},
          {"ordering", transport.is_there ? Json(transport.ordering) : Json()}};
}

Json to_json(const LibraryFacts& library) {
  return {{"name", library.name},
          {"path", library.path.empty() ? Json() : Json(library.path)},
          {"version", library.version.empty() ? Json() : Json(library.version)},
          {"problem", library.problem ? Json(*library.problem) : Json()},
          {"tried", library.tried},
          {"cost", library.cost}};
}

template <class Facts>
Json all_to_json(const std::vector<Facts>& all) {
  Json out = Json::array();
  for (const Facts& each : all) out.push_back(to_json(each));
  return out;
}

}  // namespace

Checked<int> examine_machine(const CommandLine& line) {
  if (!line.words.empty()) {
    return make_diag(DiagCode::U111, {{"verb", line.verb},
                                      {"what", "machine, the one it runs on"},
                                      {"text", line.words.front()}});
  }
  HP_REQUIRE_OK(check_places(line));
  const Examination found = examine(library_places_of(line));
  Json json = start_json(line);
  json["cpu"] = to_json(found.host);
  json["gpus"] = all_to_json(found.gpus);
  json["transports"] = all_to_json(found.transports);
  json["libraries"] = all_to_json(found.libraries);
  std::string text = print_rows(rows_of(found.host)) + "\n";
  if (!found.gpus.empty()) text += print_gpus(found.gpus) + "\n";
  text += print_transports(found.transports) + "\n";
  HP_REQUIRE_OK(show_results(line, text + print_libraries(found.libraries), json));
  return kDone;
}

}  // namespace harpe::cli
