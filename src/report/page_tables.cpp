#include <fmt/format.h>

#include <algorithm>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr std::size_t kBestRows = 12;
constexpr std::size_t kMostRows = 60;

std::string print_head(std::initializer_list<std::pair<std::string, bool>> columns) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const auto& [name, number] : columns) {
    out += "<th scope=\"col\"" + std::string(number ? " class=\"number\"" : "") + ">" +
           escape(name) + "</th>";
  }
  return out + "</tr></thead><tbody>\n";
}

std::string print_number_cell(const std::string& text) {
  return "<td class=\"number\">" + escape(text) + "</td>";
}

// A number over a bar that shows its share of the whole.
std::string print_bar_cell(const std::string& text, double share) {
  return "<td class=\"number bar\"><i style=\"--share:" +
         print_number(100 * std::clamp(share, 0.0, 1.0)) + "\"></i>" + escape(text) + "</td>";
}

// The best candidates, and others that a reader is likely to look for.
std::vector<std::size_t> rows_of(const std::vector<PageCandidate>& all) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < all.size() && rows.size() < kMostRows; ++i) {
    if (i < kBestRows || all[i].named || all[i].front || all[i].winner) rows.push_back(i);
  }
  return rows;
}

struct Columns {
  Column time, size;
  Picoseconds best, slowest;
};

std::string print_candidate(const PageCandidate& candidate, std::size_t place,
                            const Columns& columns) {
  const auto at = static_cast<double>(candidate.time.value);
  std::string tags;
  if (candidate.winner) tags += " <b class=\"tag chosen-tag\">chosen</b>";
  if (candidate.named) tags += " <b class=\"tag\">named</b>";
  if (candidate.front) tags += " <b class=\"tag\">front</b>";
  if (!candidate.excluded.empty()) {
    tags += " <b class=\"tag\" title=\"" + escape(candidate.excluded) + "\">not to choose</b>";
  }
  if (!candidate.simulated) tags += " <b class=\"tag\">estimated</b>";
  std::string name = escape(candidate.label) + tags;
  if (!candidate.schedule.empty()) {
    name = "<details><summary>" + name + "</summary><pre>" + escape(candidate.schedule) +
           "</pre></details>";
  }
  return "<tr" + std::string(candidate.winner ? " class=\"chosen\"" : "") +
         "><td class=\"number place\">" + std::to_string(place) + "</td><th scope=\"row\">" + name +
         "</th>" +
         print_bar_cell(print_in(columns.time, at),
                        at / static_cast<double>(columns.slowest.value)) +
         print_number_cell(fmt::format("{:.2f}×", at / static_cast<double>(columns.best.value))) +
         print_number_cell(candidate.bound
                               ? print_in(columns.time, static_cast<double>(candidate.bound->value))
                               : "") +
         print_number_cell(print_in(columns.size, static_cast<double>(candidate.memory_bytes))) +
         "</tr>\n";
}

// The resources of one kind, over all ranks.
struct Use {
  std::string name;  // without its rank
  double sum = 0;
  double least = 1;
  std::int64_t count = 0;
  const ResourceShare* busiest = nullptr;
};

std::string without_rank(const std::string& name) {
  constexpr std::string_view kRank = "rank ";
  if (!name.starts_with(kRank)) return name;
  const std::size_t space = name.find(' ', kRank.size());
  return space == std::string::npos ? name : name.substr(space + 1);
}

std::vector<Use> uses_of(const std::vector<ResourceShare>& shares) {
  std::vector<Use> uses;
  for (const ResourceShare& share : shares) {
    const std::string name = without_rank(share.name);
    auto use = std::ranges::find(uses, name, &Use::name);
    if (use == uses.end()) {
      uses.emplace_back().name = name;
      use = uses.end() - 1;
    }
    use->sum += share.utilisation;
    use->least = std::min(use->least, share.utilisation);
    ++use->count;
    if (use->busiest == nullptr || share.utilisation > use->busiest->utilisation) {
      use->busiest = &share;
    }
  }
  std::erase_if(uses, [](const Use& use) { return use.sum <= 0; });
  std::ranges::stable_sort(uses, std::greater<>(),
                           [](const Use& use) { return use.busiest->utilisation; });
  return uses;
}

}  // namespace

std::string draw_candidates(const ReportPage& page) {
  if (page.candidates.empty()) return {};
  const std::vector<std::size_t> rows = rows_of(page.candidates);
  const PageCandidate& best = page.candidates.front();
  Columns columns{
      .time = {}, .size = {}, .best = std::max(best.time, Picoseconds(1)), .slowest = {}};
  std::int64_t largest = 0;
  for (const std::size_t row : rows) {
    columns.slowest = std::max(columns.slowest, page.candidates[row].time);
    largest = std::max(largest, page.candidates[row].memory_bytes);
  }
  columns.slowest = std::max(columns.slowest, Picoseconds(1));
  const Unit time = time_unit(best.time);
  const Unit size = byte_unit(static_cast<double>(largest));
  columns.time = column_of(time, static_cast<double>(best.time.value), 4);
  columns.size = column_of(size, static_cast<double>(largest));
  std::string body = print_head({{"", true},
                                 {"Schedule", false},
                                 {"Time (" + std::string(time.name) + ")", true},
                                 {"Of best", true},
                                 {"Bound (" + std::string(time.name) + ")", true},
                                 {"Memory (" + std::string(size.name) + ")", true}});
  for (const std::size_t row : rows) {
    body += print_candidate(page.candidates[row], row + 1, columns);
  }
  body += "</tbody></table></div>\n";
  if (rows.size() < page.candidates.size()) {
    body += "<p class=\"note\">" + std::to_string(rows.size()) + " of " +
            print_count(static_cast<std::int64_t>(page.candidates.size())) +
            ": the best, the named and those on the front.</p>\n";
  }
  return draw_section({.id = "candidates",
                       .title = "Candidates",
                       .lead = page.search.empty() ? "Best first; a name opens its schedule."
                                                   : std::string_view(page.search)},
                      body);
}

std::string draw_refused(const ReportPage& page) {
  if (page.refused.empty()) return {};
  std::int64_t most = 1;
  for (const PageRefusal& refusal : page.refused) most = std::max(most, refusal.count);
  std::string body = print_head({{"Candidates", true}, {"Reason", false}});
  for (const PageRefusal& refusal : page.refused) {
    body += "<tr>" +
            print_bar_cell(print_count(refusal.count),
                           static_cast<double>(refusal.count) / static_cast<double>(most)) +
            "<td>" + escape_prose(refusal.reason) + "</td></tr>\n";
  }
  return draw_section(
      {.id = "refused", .title = "Refused", .lead = "What was not considered further, and why."},
      body + "</tbody></table></div>\n");
}

std::string draw_utilisation(const ReportPage& page) {
  const std::vector<Use> uses = uses_of(page.utilisation);
  if (uses.empty()) return {};
  std::string body =
      print_head({{"Resource", false}, {"Mean", true}, {"Busiest", true}, {"Where", false}});
  for (const Use& use : uses) {
    const double mean = use.sum / static_cast<double>(use.count);
    const bool alike = use.busiest->utilisation - use.least < 0.005;
    body += "<tr><th scope=\"row\">" + escape(use.name) + "</th>" +
            print_bar_cell(print_share(mean), mean) +
            print_number_cell(print_share(use.busiest->utilisation)) + "<td>" +
            (alike && use.count > 1 ? "all alike" : escape(use.busiest->name)) + "</td></tr>\n";
  }
  return draw_section(
      {.id = "utilisation",
       .title = "Utilisation",
       .lead = "How much of each kind of resource is used over the whole time, over "
               "all ranks."},
      body + "</tbody></table></div>\n");
}

std::string draw_schedule(const ReportPage& page) {
  if (page.schedule.empty()) return {};
  return draw_section({.id = "schedule", .title = "Schedule", .lead = "As a `.sched` file has it."},
                      "<pre class=\"listing\">" + escape(page.schedule) + "</pre>\n");
}

std::string draw_plan(const ReportPage& page) {
  if (page.drawing.empty()) return {};
  return draw_section(
      {.id = "plan",
       .title = "Plan",
       .lead = "A column per rank, a row per step: what arrives and from where, what "
               "is worked on, what is received."},
      "<div class=\"scroll drawing\">" + page.drawing + "</div>\n");
}

}  // namespace harpe::page
