#include "sim/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/verbs.h"
#include "compile/machines.h"
#include "report/draw_bursts.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostPuts = 1 << 16;
constexpr std::int64_t kMostSimulatedNodes = 1024;
constexpr std::int64_t kMostTokens = 1 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

Diag bad_value(std::string_view flag, const std::string& text, const std::string& wanted) {
  return make_diag(DiagCode::U109,
                   {{"flag", "--" + std::string(flag)}, {"text", text}, {"wanted", wanted}});
}

Checked<std::vector<std::int64_t>> parse_counts(std::string_view flag, const std::string& text,
                                                std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (const std::string& word : words_of(text)) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1 || count > most) {
      return bad_value(flag, text, fmt::format("numbers from 1 to {}, with commas between", most));
    }
    if (std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
  }
  std::ranges::sort(counts);
  return counts;
}
Checked<std::int64_t> parse_single(std::string_view flag, const std::string& text,
                                   std::int64_t most) {
  HP_TRY(const std::vector<std::int64_t> counts, parse_counts(flag, text, most));
  if (counts.size() == 1) return counts.front();
  return bad_value(flag, text, "one number");
}

// The values whose names `text` lists, in the order of `known`.
template <class Item>
Checked<std::vector<const Item*>> parse_names(std::string_view flag, const std::string& text,
                                              std::span<const Item> known) {
  const std::vector<std::string> words = words_of(text);
  std::string all;
  for (const Item& item : known) all += (all.empty() ? "`" : ", `") + std::string(item.name) + "`";
  for (const std::string& word : words) {
    if (word == "all" || word == "none") continue;
    if (std::ranges::find(known, word, &Item::name) == known.end()) {
      return bad_value(flag, text, "of " + all + ", with commas between, or `all`");
    }
  }
  std::vector<const Item*> named;
  for (const Item& item : known) {
    const bool is_named = std::ranges::find(words, item.name) != words.end() ||
                          std::ranges::find(words, "all") != words.end();
    if (is_named) named.push_back(&item);
  }
  return named;
}

Checked<FabricQuestion> question_of(const CommandLine& line) {
  FabricQuestion question;
  HP_TRY(question.models,
         parse_names("model", line.value("model").value_or("qwen3-30b"), all_expert_models()));
  HP_TRY(question.policies,
         parse_names("policy", line.value("policy").value_or("all"), all_put_policies()));
  const std::string nodes = line.has("draw") ? "2" : "2,4,8,16";
  HP_TRY(question.nodes,
         parse_counts("nodes", line.value("nodes").value_or(nodes), kMostSimulatedNodes));
  HP_TRY(question.tokens,
         parse_counts("tokens", line.value("tokens").value_or("256,1024,4096,16384"), kMostTokens));
  HP_TRY(question.messages,
         parse_single("messages", line.value("messages").value_or("96"), kMostPuts));
  HP_TRY(const std::int64_t bytes,
         parse_single("bytes", line.value("bytes").value_or("4096"), kMostBytes));
  question.bytes = static_cast<double>(bytes);
  return question;
}

using Lines = std::vector<std::vector<std::string>>;

std::string print_size(double bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string print_bursts(const FabricQuestion& question, const FabricStudy& study) {
  if (study.bursts.empty()) return "";
  Lines lines = {{"nodes", "policy", "time", "of puts alone", "in drains"}};
  for (const BurstRow& row : study.bursts) {
    lines.push_back(
        {std::to_string(row.nodes), std::string(row.policy->name),
         print_seconds(row.times.total.seconds()), fmt::format("{:.1f} %", 100 * row.share),
         row.times.fences.value == 0 ? "-" : print_seconds(row.times.fences.seconds())});
  }
  return fmt::format("\n{} puts of {} by every GPU\n", question.messages,
                     print_size(question.bytes)) +
         print_table(lines);
}

std::string print_layers(const FabricQuestion& question, const FabricStudy& study) {
  if (study.layers.empty()) return "";
  std::vector<std::string> head = {"model", "nodes", "policy"};
  for (const std::int64_t tokens : question.tokens) head.push_back(std::to_string(tokens));
  head.insert(head.end(), {"alpha", "beta", "R2"});
  Lines lines = {head};
  for (const LayerRow& row : study.layers) {
    std::vector<std::string> cells = {std::string(row.model->title), std::to_string(row.nodes),
                                      std::string(row.policy->name)};
    for (const ExchangeTimes& times : row.times) {
      cells.push_back(print_seconds(times.total.seconds()));
    }
    cells.push_back(print_seconds(row.line.alpha_seconds));
    cells.push_back(fmt::format("{:.2f} ns/B", 1e9 * row.line.beta_seconds));
    cells.push_back(fmt::format("{:.3f}", row.line.fit));
    lines.push_back(std::move(cells));
  }
  return "\nlayers of experts, by tokens of a GPU; T = alpha + beta M, M bytes of a message\n" +
         print_table(lines);
}

std::string print_regimes(const FabricStudy& study) {
  if (study.regimes.empty()) return "";
  Lines lines = {{"nodes", "message", "destinations", "best", "over put", "over batch"}};
  for (const RegimeRow& row : study.regimes) {
    lines.push_back({std::to_string(row.nodes), print_size(row.bytes),
                     std::to_string(row.destinations), std::string(row.best->name),
                     fmt::format("{:.2f}", row.over_put), fmt::format("{:.2f}", row.over_batch)});
  }
  return "\nwhich is best, of those that a proxy runs, for 8 puts to each destination\n" +
         print_table(lines);
}

std::string print_published(const FabricStudy& study) {
  if (study.published.empty()) return "";
  Lines lines = {{"published", "", "simulated", "error", ""}};
  for (const PublishedRow& row : study.published) {
    const std::string value = row.least == row.most
                                  ? fmt::format("{} {}", row.least, row.unit)
                                  : fmt::format("{} to {} {}", row.least, row.most, row.unit);
    lines.push_back({row.what, value, fmt::format("{:.4g} {}", row.simulated, row.unit),
                     fmt::format("{:+.1f} %", 100 * row.error()), std::string(print(row.role))});
  }
  return "\nbeside what others published\n" + print_table(lines);
}

Json exchange_times_to_json(const ExchangeTimes& times) {
  return {{"time_us", times.total.microseconds()},
          {"drains_us", times.fences.microseconds()},
          {"busy", times.busy}};
}

Json to_json(const FabricQuestion& question, const FabricStudy& study) {
  Json bursts = Json::array();
  for (const BurstRow& row : study.bursts) {
    Json& burst = bursts.emplace_back(exchange_times_to_json(row.times));
    burst["nodes"] = row.nodes;
    burst["policy"] = row.policy->name;
    burst["share"] = row.share;
  }
  Json layers = Json::array();
  for (const LayerRow& row : study.layers) {
    Json times = Json::array();
    for (std::size_t i = 0; i < row.times.size(); ++i) {
      times.push_back(exchange_times_to_json(row.times[i]));
      times.back()["tokens"] = question.tokens[i];
    }
    layers.push_back(Json{{"model", row.model->name},
                          {"nodes", row.nodes},
                          {"policy", row.policy->name},
                          {"times", std::move(times)},
                          {"alpha_us", 1e6 * row.line.alpha_seconds},
                          {"beta_ns_per_byte", 1e9 * row.line.beta_seconds},
                          {"r_squared", row.line.fit}});
  }
  Json regimes = Json::array();
  for (const RegimeRow& row : study.regimes) {
    regimes.push_back(Json{{"nodes", row.nodes},
                           {"bytes", row.bytes},
                           {"destinations", row.destinations},
                           {"best", row.best->name},
                           {"over_put", row.over_put},
                           {"over_batch", row.over_batch}});
  }
  Json published = Json::array();
  for (const PublishedRow& row : study.published) {
    published.push_back(Json{{"what", row.what},
                             {"unit", row.unit},
                             {"published", row.least},
                             {"published_most", row.most},
                             {"simulated", row.simulated},
                             {"error", row.error()},
                             {"role", print(row.role)}});
  }
  return {{"bursts", std::move(bursts)},
          {"layers", std::move(layers)},
          {"regimes", std::move(regimes)},
          {"published", std::move(published)}};
}

}  // namespace

Checked<int> compare_policies(const CommandLine& line) {
  if (!line.words.empty()) {
    return make_diag(DiagCode::U111,
                     {{"verb", line.verb}, {"what", "machine"}, {"text", line.words.front()}});
  }
  HP_REQUIRE_OK(check_places(line));
  const std::optional<std::string> name = line.value("machine");
  if (!name) return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "`--machine X`"}});
  HP_TRY(const Machine machine, load_machine(*name));
  HP_TRY(const FabricQuestion question, question_of(line));
  Json json = start_json(line);
  json["machine"] = machine.name;
  json["inherited"] = list_inherited(machine);
  if (line.has("draw")) {
    HP_TRY(const std::string drawing, draw_bursts(machine, question));
    json["drawing"] = drawing;
    HP_REQUIRE_OK(show_results(line, print_inherited(machine) + drawing, json));
    return kDone;
  }
  show_progress("simulating");
  HP_TRY(const FabricStudy study, study_fabric(machine, question));
  json["study"] = to_json(question, study);
  HP_REQUIRE_OK(show_results(line,
                             machine.name + "\n" + print_inherited(machine) +
                                 print_bursts(question, study) + print_layers(question, study) +
                                 print_regimes(study) + print_published(study),
                             json));
  return kDone;
}

}  // namespace harpe::cli
