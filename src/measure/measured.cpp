#include "measure/measured.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "support/whole_file.h"

namespace harpe {
namespace {

namespace fs = std::filesystem;
using Row = nlohmann::json;

constexpr std::string_view kPeers = "_peers.jsonl";
constexpr std::string_view kOverlap = "_overlap.jsonl";

// A line of a file, for diagnostics.
struct LineOfFile {
  const std::string& path;
  std::int64_t line = 0;
};

Diag wrong(const LineOfFile& place, const std::string& what) {
  return make_diag(DiagCode::U132, {{"path", place.path}, {"line", place.line}, {"what", what}});
}

Checked<std::int64_t> size_in(const Row& row, const char* name, const LineOfFile& place) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number_integer()) {
    return wrong(place, std::string("`") + name + "` is not an integer");
  }
  return found->get<std::int64_t>();
}

// A time; none if the row has none, because failed rows hold null or a word.
std::optional<double> time_in(const Row& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

struct Column {
  const char* time;
  std::string family;
  std::string schedule;
  bool counts = true;
};

void add_case(std::vector<MeasuredCase>& cases, const Row& row, const Column& column,
              const Request& request) {
  const std::optional<double> time = time_in(row, column.time);
  if (!time) return;
  MeasuredCase one;
  one.family = column.family;
  one.label = join(request.parameters);
  one.request = request;
  one.request.schedule = column.schedule;
  one.microseconds = *time;
  one.counts = column.counts;
  one.by_libraries = true;
  cases.push_back(std::move(one));
}

Checked<Ok> read_product(std::vector<MeasuredCase>& cases, const Row& row, const std::string& kind,
                         const LineOfFile& place) {
  Request request{.target = kind, .parameters = {}, .mesh = "tp=8", .schedule = {}};
  for (const auto& [parameter, name] : {std::pair{"m", "M"}, {"n", "N"}, {"k", "K"}}) {
    HP_TRY(const std::int64_t size, size_in(row, name, place));
    request.parameters.push_back(std::string(parameter) + "=" + std::to_string(size));
  }
  add_case(cases, row, {.time = "nccl_us", .family = kind, .schedule = "bulk"}, request);
  request.target = "gemm_ar";
  add_case(cases, row,
           {.time = "gemm_ar_nccl_us", .family = "gemm_ar", .schedule = "bulk", .counts = false},
           request);
  return Ok{};
}

Checked<Ok> read_decode(std::vector<MeasuredCase>& cases, const Row& row, const LineOfFile& place) {
  Request request{.target = "decode", .parameters = {}, .mesh = "cp=8", .schedule = {}};
  for (const auto& [parameter, name] :
       {std::pair{"batch", "B"}, {"kv", "kv"}, {"heads", "h"}, {"kv_heads", "kh"}}) {
    HP_TRY(const std::int64_t size, size_in(row, name, place));
    request.parameters.push_back(std::string(parameter) + "=" + std::to_string(size));
  }
  request.parameters.emplace_back("head_dim=128");
  add_case(cases, row,
           {.time = "nccl_graph_us", .family = "decode", .schedule = "bulk", .counts = false},
           request);
  return Ok{};
}

// Copies by copy engines, and one GEMM per part as it arrives, on 4 ranks: `variant` 1.
Checked<Ok> read_overlap(std::vector<MeasuredCase>& cases, const Row& row,
                         const LineOfFile& place) {
  HP_TRY(const std::int64_t variant, size_in(row, "variant", place));
  if (variant != 1) return Ok{};
  constexpr std::int64_t kRanks = 4;
  Request request{.target = "ag_gemm", .parameters = {}, .mesh = "tp=4", .schedule = {}};
  for (const auto& [parameter, name] : {std::pair{"m", "m"}, {"n", "n_local"}, {"k", "k"}}) {
    HP_TRY(const std::int64_t size, size_in(row, name, place));
    const std::int64_t whole = std::string_view(parameter) == "n" ? kRanks * size : size;
    request.parameters.push_back(std::string(parameter) + "=" + std::to_string(whole));
  }
  add_case(cases, row,
           {.time = "us_single", .family = "overlap", .schedule = "fetch", .counts = false},
           request);
  return Ok{};
}

Checked<Ok> read_attention(std::vector<MeasuredCase>& cases, const Row& row,
                           const LineOfFile& place) {
  Request request{.target = "attention", .parameters = {}, .mesh = "cp=8", .schedule = {}};
  for (const auto& [parameter, name] :
       {std::pair{"batch", "b"}, {"seq", "S"}, {"heads", "h"}, {"kv_heads", "kh"}}) {
    HP_TRY(const std::int64_t size, size_in(row, name, place));
    request.parameters.push_back(std::string(parameter) + "=" + std::to_string(size));
  }
  const auto causal = row.find("causal");
  if (causal == row.end() || !causal->is_boolean()) {
    return wrong(place, "`causal` is not true or false");
  }
  request.parameters.emplace_back("head_dim=128");
  request.parameters.emplace_back(causal->get<bool>() ? "causal=true" : "causal=false");
  add_case(cases, row,
           {.time = "allgather_kv_graph", .family = "attention", .schedule = "allgather"}, request);
  add_case(cases, row,
           {.time = "ulysses_graph", .family = "ulysses", .schedule = "ulysses", .counts = false},
           request);
  return Ok{};
}

Checked<std::string> text_in(const Row& row, const char* name, const LineOfFile& place) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_string()) {
    return wrong(place, std::string("`") + name + "` is not a string");
  }
  return found->get<std::string>();
}

// Rows without this field ran with collectives by pulls and partial states in f32.
Checked<Ok> read_execution(MeasuredCase& one, const Row& row, const LineOfFile& place) {
  if (const auto engine = row.find("collectives"); engine != row.end()) {
    HP_TRY(const std::string name, text_in(row, "collectives", place));
    const auto found = std::ranges::find(kEngineNames, name);
    if (found == kEngineNames.end()) return wrong(place, "`collectives` is not auto, nccl or pull");
    one.collectives = static_cast<CollectiveEngine>(found - kEngineNames.begin());
  }
  if (const auto narrow = row.find("partials16"); narrow != row.end()) {
    if (!narrow->is_boolean()) return wrong(place, "`partials16` is not true or false");
    one.has_partials16 = narrow->get<bool>();
  }
  return Ok{};
}

// A schedule that competes with others of the same operator, sizes, ranks and processors.
Checked<Ok> read_plan(std::vector<MeasuredCase>& cases, const Row& row, const LineOfFile& place) {
  MeasuredCase one;
  HP_TRY(one.request.target, text_in(row, "operator", place));
  HP_TRY(one.request.mesh, text_in(row, "mesh", place));
  HP_TRY(one.request.schedule, text_in(row, "label", place));
  HP_TRY(one.request.schedule_text, text_in(row, "schedule", place));
  HP_TRY(one.processor, text_in(row, "processor", place));
  HP_REQUIRE_OK(read_execution(one, row, place));
  const auto parameters = row.find("parameters");
  if (parameters == row.end() || !parameters->is_array()) {
    return wrong(place, "`parameters` is not a list");
  }
  for (const Row& parameter : *parameters) {
    if (!parameter.is_string()) return wrong(place, "`parameters` holds what is not a string");
    one.request.parameters.push_back(parameter.get<std::string>());
  }
  const std::optional<double> time = time_in(row, "measured_us");
  if (!time || !(*time > 0)) return wrong(place, "`measured_us` is no time");
  one.microseconds = *time;
  one.label = join(one.request.parameters);
  one.family = one.request.target + (one.label.empty() ? "" : " " + one.label) + " on " +
               *one.request.mesh + ", " + one.processor;
  cases.push_back(std::move(one));
  return Ok{};
}

Checked<Ok> read_line(std::vector<MeasuredCase>& cases, const std::string& text,
                      const LineOfFile& place) {
  const Row row = Row::parse(text, nullptr, false);
  if (row.is_discarded() || !row.is_object()) return wrong(place, "no JSON object");
  if (place.path.ends_with(kOverlap)) return read_overlap(cases, row, place);
  if (place.path.ends_with(kPlansFile)) return read_plan(cases, row, place);
  const auto found = row.find("kind");
  if (found == row.end() || !found->is_string()) return wrong(place, "`kind` is not a string");
  const auto kind = found->get<std::string>();
  if (kind == "ag_gemm" || kind == "gemm_rs") return read_product(cases, row, kind, place);
  if (kind == "attn_fwd") return read_attention(cases, row, place);
  if (kind == "decode") return read_decode(cases, row, place);
  return Ok{};
}

Checked<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::string path = entry.path().string();
    if (path.ends_with(kPeers) || path.ends_with(kOverlap) || path.ends_with(kPlansFile)) {
      paths.push_back(std::move(path));
    }
  }
  if (error) return make_diag(DiagCode::I101, {{"path", folder}, {"reason", error.message()}});
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

Checked<std::vector<MeasuredCase>> read_measurements(const std::string& folder) {
  std::vector<MeasuredCase> cases;
  HP_TRY(const std::vector<std::string> paths, files_in(folder));
  for (const std::string& path : paths) {
    HP_TRY(const std::string text, read_whole(path));
    std::istringstream lines(text);
    LineOfFile place{.path = path};
    for (std::string line; std::getline(lines, line);) {
      ++place.line;
      if (!line.empty()) HP_REQUIRE_OK(read_line(cases, line, place));
    }
  }
  if (cases.empty()) return make_diag(DiagCode::U131, {{"path", folder}});
  return cases;
}

}  // namespace harpe
