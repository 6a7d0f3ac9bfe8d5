#include "compile/catalogue.h"

#include <utility>

#include "compile/machines.h"
#include "compile/target.h"
#include "harpe/harpe.h"
#include "ir/text.h"
#include "library/boundary.h"
#include "library/dtypes.h"
#include "library/request.h"
#include "ops/registry.h"
#include "run/doctor.h"
#include "schedule/replay.h"
#include "support/option_words.h"

namespace harpe::library {
namespace {

v1::OperatorInfo to_info(const Program& program) {
  const Description description = harpe::describe(program);
  v1::OperatorInfo out{.name = description.name,
                       .summary = description.summary,
                       .parameters = {},
                       .buffers = {},
                       .text = print(program)};
  for (const ParameterText& each : description.parameters) {
    out.parameters.push_back({.name = each.name, .kind = each.kind, .value = each.value});
  }
  for (const BufferText& each : description.buffers) {
    out.buffers.push_back({.name = each.name,
                           .role = each.role,
                           .dtype = each.dtype,
                           .shape = each.shape,
                           .condition = each.condition});
  }
  return out;
}

harpe::Checked<v1::OperatorInfo> describe_subject(const std::string& op) {
  HP_TRY(const Request request, make_subject(op));
  HP_TRY(const Program program, request.program_text
                                    ? parse_operator(*request.program_text, request.target)
                                    : load_template(request.target));
  return to_info(program);
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Illegal:
      return "illegal";
    case Verdict::Unproven:
      return "unproven";
    case Verdict::Unsupported:
      return "unsupported";
  }
  return "";
}

harpe::Checked<v1::Explanation> explain_code(const std::string& code) {
  std::string name = code;
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] += 'A' - 'a';
  const std::optional<DiagCode> found = find_diag(name);
  if (!found) {
    std::vector<std::string> known;
    for (const DiagInfo& diag : all_diags()) known.emplace_back(diag.name);
    return make_diag(DiagCode::U115, {{"name", name}, {"hint", suggestion(name, known)}});
  }
  const DiagInfo& diag = info(*found);
  return v1::Explanation{.code = std::string(diag.name),
                         .verdict = std::string(name_of(diag.verdict)),
                         .message = fill_options(diag.message),
                         .meaning = fill_options(diag.meaning),
                         .remedy = fill_options(diag.remedy)};
}

v1::Doctor to_public(const Examination& found) {
  v1::Doctor out;
  out.host = {.name = found.host.name,
              .cores = found.host.cores,
              .vectors = found.host.vectors,
              .free_bytes = found.host.free_bytes,
              .products = found.host.products};
  for (const GpuFacts& gpu : found.gpus) {
    out.gpus.push_back({.id = gpu.id,
                        .name = gpu.name,
                        .capability = gpu.capability,
                        .multiprocessors = gpu.multiprocessors,
                        .memory_bytes = gpu.memory_bytes,
                        .free_bytes = gpu.free_bytes,
                        .peers = gpu.peers,
                        .problem = gpu.problem.value_or("")});
  }
  for (const LibraryFacts& each : found.libraries) {
    out.libraries.push_back({.name = each.name,
                             .path = each.path,
                             .version = each.version,
                             .problem = each.problem.value_or(""),
                             .cost = each.cost});
  }
  for (const TransportFacts& each : found.transports) {
    out.transports.push_back({.name = each.name,
                              .is_there = each.is_there,
                              .is_tested = each.is_tested,
                              .ordering = each.ordering});
  }
  return out;
}

harpe::Checked<v1::Script> read_script(const v1::Question& question, Call& call) {
  HP_TRY(const Request request, make_request(question, call));
  HP_REQUIRE_OK(call.begin("choosing a schedule"));
  HP_TRY(const Scheduled scheduled, call.session().schedule(request));
  const auto& [program, mesh, written, form, choice] = scheduled;
  HP_TRY(const Script script,
         canonicalise(written ? *written : derive_script(program, mesh, form)));
  HP_TRY(const NormalForm made, replay(program, mesh, script));
  v1::Script out{.name = script.name,
                 .mesh = script.mesh,
                 .steps = {},
                 .text = print(script),
                 .form = print(made)};
  for (const Step& step : script.steps) out.steps.push_back(print(step));
  return out;
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

std::int64_t size_in_bytes(DType dtype) {
  return harpe::size_in_bytes(library::internal_dtype(dtype));
}
std::string print(DType dtype) { return std::string(harpe::print(library::internal_dtype(dtype))); }

std::string version() { return library::build_version(); }

Checked<Explanation> explain(const std::string& code) {
  return library::enter<Explanation>({},
                                     [&](library::Call&) { return library::explain_code(code); });
}

Checked<std::vector<OperatorInfo>> operators() {
  using All = std::vector<OperatorInfo>;
  return library::enter<All>({}, [](library::Call&) -> harpe::Checked<All> {
    All all;
    for (const Operator& each : all_operators()) all.push_back(library::to_info(template_of(each)));
    return all;
  });
}

Checked<OperatorInfo> describe(const std::string& op) {
  return library::enter<OperatorInfo>(
      {}, [&](library::Call&) { return library::describe_subject(op); });
}

Checked<std::vector<MachineInfo>> machines() {
  using All = std::vector<MachineInfo>;
  return library::enter<All>({}, [](library::Call&) -> harpe::Checked<All> {
    All all;
    for (const Machine& each : list_machines()) {
      all.push_back({.name = each.name,
                     .summary = each.summary,
                     .processors = each.processors(),
                     .levels = print_levels(each),
                     .text = harpe::print(each)});
    }
    return all;
  });
}

Checked<std::vector<ScheduleInfo>> schedules(const Question& question) {
  using All = std::vector<ScheduleInfo>;
  return library::enter<All>({}, [&](library::Call& call) -> harpe::Checked<All> {
    HP_TRY(const Request request, library::make_request(question, call));
    HP_TRY(const ScheduleList list, list_schedules(call.session(), request));
    All all;
    for (const ScheduleEntry& each : list.entries) {
      ScheduleInfo& out = all.emplace_back();
      out.name = each.name;
      out.summary = each.summary;
      if (each.refusal) out.refusal = library::to_error(*each.refusal);
    }
    return all;
  });
}

Checked<Script> read_schedule(const Question& question, const Options& options) {
  return library::enter<Script>(
      options, [&](library::Call& call) { return library::read_script(question, call); });
}

Checked<Doctor> doctor(const std::vector<std::string>& library_folders) {
  return library::enter<Doctor>({}, [&](library::Call&) -> harpe::Checked<Doctor> {
    CudaPlaces places;
    places.library_folders = library_folders;
    return library::to_public(examine(places));
  });
}

}  // namespace harpe::v1
