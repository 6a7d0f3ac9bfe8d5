#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/plan_cache.h"
#include "support/build.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostDays = 36500;

// The operands of each action besides `--dir`.
struct Action {
  std::string_view name;
  bool takes_file = false;
};
constexpr std::array kActions = {Action{"list"}, Action{"export", true}, Action{"import", true},
                                 Action{"prune"}};

std::string known_actions() {
  std::string known;
  for (const Action& action : kActions) {
    known += (known.empty() ? "" : ", ") + std::string(action.name);
  }
  return known;
}

Checked<Action> action_of(const CommandLine& line) {
  if (line.words.empty()) {
    return make_diag(DiagCode::U110,
                     {{"verb", line.verb}, {"what", "an action: " + known_actions()}});
  }
  const std::string& name = line.words.front();
  const auto action = std::ranges::find(kActions, name, &Action::name);
  if (action == kActions.end()) {
    std::vector<std::string> names;
    for (const Action& known : kActions) names.emplace_back(known.name);
    return make_diag(
        DiagCode::U150,
        {{"name", name}, {"hint", suggestion(name, names)}, {"known", known_actions()}});
  }
  const std::size_t words = action->takes_file ? 2 : 1;
  const std::string verb = line.verb + " " + name;
  if (line.words.size() < words) {
    return make_diag(DiagCode::U110, {{"verb", verb}, {"what", "a file"}});
  }
  if (line.words.size() > words) {
    return make_diag(DiagCode::U111, {{"verb", verb},
                                      {"what", action->takes_file ? "file" : "action"},
                                      {"text", line.words[words]}});
  }
  if (line.has("older") && name != "prune") {
    return make_diag(DiagCode::U151, {{"flag", "--older"}, {"owner", "prune"}, {"action", name}});
  }
  return *action;
}

std::string count(std::size_t entries) {
  return std::to_string(entries) + (entries == 1 ? " entry" : " entries");
}

void warn(const std::vector<Diag>& passed_over) {
  for (const Diag& diag : passed_over) print_warning(diag);
}

std::string print_sizes(const CacheKey& key) {
  std::string out;
  for (const auto& [axis, size] : key.sizes) {
    out += (out.empty() ? "" : " ") + axis + "=" + std::to_string(size);
  }
  return out;
}

// A measured schedule comes before the best predicted one.
const CachedSchedule& best_of(const CacheEntry& entry) {
  const auto measured = std::ranges::find_if(
      entry.schedules, [](const CachedSchedule& one) { return one.measured.has_value(); });
  return measured == entry.schedules.end() ? entry.schedules.front() : *measured;
}

// The library time that was measured beside it.
Json baseline_to_json(const CachedSchedule& schedule) {
  if (!schedule.measured || !schedule.measured->baseline) return {};
  const CachedBaseline& baseline = *schedule.measured->baseline;
  return {{"name", baseline.name}, {"time_us", baseline.time.microseconds()}};
}

Json to_json(const CacheFile& file) {
  const CacheKey& key = file.entry.key;
  Json sizes = Json::object();
  for (const auto& [axis, size] : key.sizes) sizes[axis] = size;
  Json schedules = Json::array();
  for (const CachedSchedule& schedule : file.entry.schedules) {
    Json item = Json::object();
    item["label"] = schedule.label;
    item["time_us"] = schedule.predicted.microseconds();
    item["measured_us"] = schedule.measured ? Json(schedule.measured->time.microseconds()) : Json();
    item["measured_on"] = schedule.measured ? Json(schedule.measured->processor) : Json();
    item["baseline"] = baseline_to_json(schedule);
    item["memory_bytes"] = schedule.memory_bytes;
    schedules.push_back(std::move(item));
  }
  return {{"path", file.path},
          {"operator", key.program},
          {"sizes", std::move(sizes)},
          {"dtype", key.dtype},
          {"contract", print(key.contract)},
          {"numerics", print(key.numerics)},
          {"mesh", key.mesh},
          {"machine", key.machine},
          {"memory_limit", key.memory_limit ? Json(*key.memory_limit) : Json()},
          {"version", key.version},
          {"found", file.entry.date},
          {"schedules", std::move(schedules)}};
}

Checked<int> list(const CommandLine& line, const std::string& folder) {
  HP_TRY(const CacheListing listing, list_cache(folder));
  warn(listing.passed_over);
  std::vector<std::vector<std::string>> lines = {
      {"operator", "mesh", "machine", "schedule", "time", "memory", "found", "sizes"}};
  Json all = Json::array();
  for (const CacheFile& file : listing.files) {
    const CacheKey& key = file.entry.key;
    const CachedSchedule& best = best_of(file.entry);
    lines.push_back(
        {key.program, key.mesh, key.machine, best.label,
         print_seconds((best.measured ? best.measured->time : best.predicted).seconds()),
         print_bytes(best.memory_bytes), file.entry.date, print_sizes(key) + " " + key.dtype});
    all.push_back(to_json(file));
  }
  const std::string title = folder + ": " + count(listing.files.size()) + "\n";
  Json json = start_json(line);
  json["folder"] = folder;
  json["passed_over"] = listing.passed_over.size();
  json["entries"] = std::move(all);
  HP_REQUIRE_OK(
      show_results(line, title + (listing.files.empty() ? "" : "\n" + print_table(lines)), json));
  return kDone;
}

Checked<int> export_to(const CommandLine& line, const std::string& folder) {
  const std::string& path = line.words[1];
  HP_TRY(const CacheListing listing, export_cache(folder, path));
  announce(path);
  warn(listing.passed_over);
  Json json = start_json(line);
  json["folder"] = folder;
  json["file"] = path;
  json["exported"] = listing.files.size();
  HP_REQUIRE_OK(show_results(line, count(listing.files.size()) + " in `" + path + "`\n", json));
  return kDone;
}

Checked<int> import_from(const CommandLine& line, const std::string& folder) {
  const std::string& path = line.words[1];
  HP_TRY(const std::int64_t imported, import_cache(folder, path));
  Json json = start_json(line);
  json["folder"] = folder;
  json["file"] = path;
  json["imported"] = imported;
  HP_REQUIRE_OK(show_results(
      line, count(static_cast<std::size_t>(imported)) + " from `" + path + "`\n", json));
  return kDone;
}

Checked<int> prune(const CommandLine& line, const std::string& folder) {
  std::optional<std::int64_t> days;
  if (const auto older = line.value("older")) {
    HP_TRY(days, parse_count("--older", *older, 0, kMostDays));
  }
  HP_TRY(const Pruned pruned, prune_cache(folder, identify_build(HARPE_VERSION), days));
  warn(pruned.passed_over);
  const Rows rows = {{"unreadable", std::to_string(pruned.unreadable)},
                     {"of other versions", std::to_string(pruned.foreign)},
                     {"old", std::to_string(pruned.old)},
                     {"left over", std::to_string(pruned.leftovers)},
                     {"kept", std::to_string(pruned.kept)}};
  Json json = start_json(line);
  json["folder"] = folder;
  json["unreadable"] = pruned.unreadable;
  json["foreign"] = pruned.foreign;
  json["old"] = pruned.old;
  json["leftovers"] = pruned.leftovers;
  json["kept"] = pruned.kept;
  HP_REQUIRE_OK(show_results(line, "removed from " + folder + "\n" + print_rows(rows), json));
  return kDone;
}

}  // namespace

Checked<int> use_cache(const CommandLine& line) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(const Action action, action_of(line));
  HP_TRY(const std::string folder, cache_folder(line.value("dir"), "--dir"));
  if (action.name == "list") return list(line, folder);
  if (action.name == "export") return export_to(line, folder);
  if (action.name == "import") return import_from(line, folder);
  return prune(line, folder);
}

}  // namespace harpe::cli
