#include "driver/simulation.h"

#include <algorithm>
#include <charconv>

#include "driver/catalogue.h"
#include "driver/machines.h"
#include "driver/target.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

Checked<TaxRow> row_of(const Plan& plan, const Machine& machine, Launch launch) {
  HP_REQUIRE_OK(check_fits(plan, machine));
  const Taxes taxes = tax(plan, machine, launch);
  return TaxRow{.schedule = plan.form.name,
                .taxes = taxes,
                .bound = name_of(machine, taxes.bound),
                .refusal = std::nullopt};
}

// One of several schedules: where it is refused, that is its row.
TaxRow row_among(Session& session, Request request, const std::string& schedule,
                 const Machine& machine, Launch launch) {
  request.schedule = schedule;
  const Checked<Plan> plan = session.plan(request);
  TaxRow row{.schedule = schedule, .taxes = std::nullopt, .refusal = std::nullopt};
  if (!plan.ok()) {
    row.refusal = plan.error();
    return row;
  }
  Checked<TaxRow> found = row_of(*plan, machine, launch);
  if (found.ok()) return *std::move(found);
  row.refusal = found.error();
  return row;
}

// The one schedule that a plan file, a flag or `auto` says.
Checked<TaxList> list_one(Session& session, const Request& request,
                          const std::optional<std::string>& machine, Launch launch) {
  HP_TRY(const Plan plan, session.plan(request));
  TaxList list{.program = plan.program.name, .mesh = plan.mesh, .machine = {}, .rows = {}};
  HP_TRY(list.machine, machine_for(machine, plan.mesh));
  HP_TRY(TaxRow row, row_of(plan, list.machine, launch));
  list.rows.push_back(std::move(row));
  return list;
}

bool is_faster(const TaxRow& a, const TaxRow& b) {
  if (a.taxes.has_value() != b.taxes.has_value()) return a.taxes.has_value();
  return a.taxes && a.taxes->total < b.taxes->total;
}

}  // namespace

Checked<Machine> machine_for(const std::optional<std::string>& name, const Mesh& mesh) {
  return name ? load_machine(*name) : default_machine(mesh);
}

Checked<SimulateOptions::Delay> parse_delay(const std::string& text, std::int64_t ranks) {
  constexpr double kLongest = 1e9;  // microseconds
  const std::size_t equals = text.find('=');
  const auto refuse = [&] {
    return make_diag(
        DiagCode::U109,
        {{"flag", "--delay"}, {"text", text}, {"wanted", "RANK=MICROSECONDS, as in 3=25.5"}});
  };
  if (equals == std::string::npos) return refuse();
  HP_TRY(const std::int64_t rank,
         parse_count("--delay", std::string_view(text).substr(0, equals), 0, ranks - 1));
  double time = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + equals + 1, end, time);
  const bool in_range = time >= 0 && time <= kLongest;  // false of a NaN
  if (error != std::errc() || stopped != end || !in_range) return refuse();
  return SimulateOptions::Delay{RankId(rank), from_microseconds(time)};
}

Checked<Launch> parse_launch(const std::string& text) {
  if (text == "graph") return Launch::Graph;
  if (text == "host") return Launch::Host;
  static const std::vector<std::string> kWays = {"graph", "host"};
  return make_diag(DiagCode::U109, {{"flag", "--launch"},
                                    {"text", text},
                                    {"wanted", "graph or host" + suggestion(text, kWays)}});
}

Checked<TaxList> list_taxes(Session& session, const Request& request,
                            const std::optional<std::string>& machine, Launch launch) {
  if (request.schedule || kind_of(request.target) == TargetKind::PlanFile) {
    return list_one(session, request, machine, launch);
  }
  HP_TRY(const ScheduleList schedules, list_schedules(session, request));
  TaxList list{.program = schedules.program, .mesh = schedules.mesh, .machine = {}, .rows = {}};
  HP_TRY(list.machine, machine_for(machine, list.mesh));
  if (list.mesh.ranks() > list.machine.processors()) {
    return make_diag(DiagCode::M117, {{"ranks", list.mesh.ranks()},
                                      {"machine", list.machine.name},
                                      {"processors", list.machine.processors()}});
  }
  for (const ScheduleEntry& entry : schedules.entries) {
    if (entry.refusal) continue;
    list.rows.push_back(row_among(session, request, entry.name, list.machine, launch));
  }
  if (list.rows.empty()) return list_one(session, request, machine, launch);
  std::ranges::stable_sort(list.rows, is_faster);
  return list;
}

std::string_view print(Spending spending) {
  switch (spending) {
    case Spending::Compute:
      return "compute";
    case Spending::Memory:
      return "memory";
    case Spending::Link:
      return "link";
    case Spending::Message:
      return "message";
    case Spending::Launch:
      return "launch";
    case Spending::Signal:
      return "signal";
    case Spending::Barrier:
      return "barrier";
    case Spending::Fold:
      return "fold";
  }
  return "";
}

}  // namespace harpe
