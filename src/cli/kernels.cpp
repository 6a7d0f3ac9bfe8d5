#include "run/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "run/gpus.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

// Dynamic and, if known, static shared memory of a thread block.
std::int64_t shared_bytes_of(const KernelRow& row) {
  return row.variant.shared_bytes + (row.report ? row.report->resources.shared_bytes : 0);
}

std::string print_rows_of(const KernelListing& listing, bool compiled) {
  std::vector<std::vector<std::string>> lines = {{"kernel", "family", "tile", "threads", "shared"}};
  if (compiled) {
    for (const char* title :
         {"registers", "spills", "HGMMA", "local", "cubin", "compiled in", "cache", "findings"}) {
      lines.front().emplace_back(title);
    }
  }
  for (const KernelRow& row : listing.rows) {
    std::vector<std::string>& line = lines.emplace_back(std::vector<std::string>{
        row.variant.name, row.variant.family, row.variant.tile, std::to_string(row.variant.threads),
        print_bytes(shared_bytes_of(row))});
    if (!compiled) continue;
    if (row.report) {
      line.insert(line.end(), {std::to_string(row.report->resources.registers),
                               std::to_string(row.report->resources.spill_bytes),
                               std::to_string(row.report->instructions.matrix),
                               std::to_string(row.report->instructions.local),
                               print_bytes(row.report->cubin_bytes),
                               print_seconds(row.report->seconds), std::string(row.cache)});
    } else {
      line.insert(line.end(), 7, "-");
    }
    std::string findings;
    for (const Diag& diag : row.findings) findings += std::string(info(diag.code).name) + " ";
    line.push_back(findings);
  }
  return print_table(lines);
}

Json to_json(const KernelRow& row) {
  Json json = Json::object();
  json["name"] = row.variant.name;
  json["family"] = row.variant.family;
  json["tile"] = row.variant.tile;
  json["threads"] = row.variant.threads;
  json["shared_bytes"] = shared_bytes_of(row);
  if (row.report) {
    const auto& [resources, instructions, seconds, cubin_bytes] = *row.report;
    json["registers"] = resources.registers;
    json["spill_bytes"] = resources.spill_bytes;
    json["stack_bytes"] = resources.stack_bytes;
    json["instructions"] = instructions.all;
    json["matrix_instructions"] = instructions.matrix;
    json["local_instructions"] = instructions.local;
    json["cubin_bytes"] = cubin_bytes;
    json["compile_seconds"] = seconds;
    json["cache"] = row.cache;
  }
  Json findings = Json::array();
  for (const Diag& diag : row.findings) findings.push_back(print_message(diag));
  json["findings"] = std::move(findings);
  return json;
}

// Prints the findings to standard error; returns the number of kernels with findings.
std::size_t show_findings(const KernelListing& listing) {
  std::size_t refused = 0;
  for (const KernelRow& row : listing.rows) {
    for (const Diag& diag : row.problems) print_warning(diag);
    for (const Diag& diag : row.findings) print_error(print_diag(diag) + "\n");
    if (!row.findings.empty()) ++refused;
  }
  return refused;
}

std::string print_listing(const KernelListing& listing, bool compiled, std::size_t refused) {
  const std::string count =
      std::to_string(listing.rows.size()) + (listing.rows.size() == 1 ? " kernel" : " kernels");
  if (!compiled) {
    return count + "\n\n" + print_rows_of(listing, compiled) +
           "\n`harpe kernels --compile` compiles them and checks what came of it.\n";
  }
  double seconds = 0;
  double longest = 0;
  for (const KernelRow& row : listing.rows) {
    if (!row.report) continue;
    seconds += row.report->seconds;
    longest = std::max(longest, row.report->seconds);
  }
  return fmt::format("{} by {}: {} in all, the longest {}; {} as they should be\n\n{}", count,
                     listing.compiler, print_seconds(seconds), print_seconds(longest),
                     listing.rows.size() - refused, print_rows_of(listing, compiled));
}

}  // namespace

Checked<int> list_kernels(const CommandLine& line) {
  HP_REQUIRE_OK(check_places(line));
  KernelRequest request{.names = line.words, .compile = line.has("compile"), .places = {}};
  if (request.compile) {
    HP_TRY(request.places, cuda_places_of(line));
  }
  HP_TRY(const Gpus* const gpus, find_gpus());
  HP_TRY(const KernelListing listing, gpus->list_kernels(request));
  const std::size_t refused = show_findings(listing);
  Json json = start_json(line);
  Json kernels = Json::array();
  for (const KernelRow& row : listing.rows) kernels.push_back(to_json(row));
  json["compiler"] = listing.compiler.empty() ? Json() : Json(listing.compiler);
  json["refused"] = refused;
  json["kernels"] = std::move(kernels);
  HP_REQUIRE_OK(show_results(line, print_listing(listing, request.compile, refused), json));
  return refused == 0 ? kDone : kRefused;
}

}  // namespace harpe::cli
