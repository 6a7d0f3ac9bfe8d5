#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "extension/array.h"
#include "extension/call.h"
#include "extension/calls.h"
#include "extension/groups.h"
#include "extension/plan_records.h"
#include "extension/routes.h"

// The functions that the Python package wraps. Nothing else imports this module.
namespace harpe::python {
namespace {

using nb::literals::operator""_a;

// What a question can name.

void bind_catalogue(nb::module_& module) {
  module.def("version", &version);
  module.def("explain", [](const std::string& code) { return take(explain(code)); }, "code"_a);
  module.def("operators", [] { return call([] { return operators(); }); });
  module.def(
      "describe", [](const std::string& op) { return call([&] { return describe(op); }); }, "op"_a);
  module.def("machines", [] { return call([] { return machines(); }); });
  module.def(
      "schedules",
      [](const Question& question) { return call([&] { return schedules(question); }); },
      "question"_a);
  module.def(
      "doctor",
      [](const std::vector<std::string>& folders) { return call([&] { return doctor(folders); }); },
      "folders"_a);
}

// Questions and plans.

Stage parse_stage(const std::string& name) {
  if (name == "program") return Stage::Program;
  if (name == "schedule") return Stage::Schedule;
  if (name == "plan") return Stage::Plan;
  if (name == "launches") return Stage::Launches;
  throw nb::value_error(
      ("stage must be program, schedule, plan or launches, not `" + name + "`").c_str());
}

void bind_questions(nb::module_& module) {
  nb::class_<Question>(module, "Question")
      .def(
          "__init__",
          [](Question* self, std::string op, std::map<std::string, Value> parameters,
             std::string mesh, std::string machine, std::string schedule,
             std::map<std::string, std::string> homes, std::string layout) {
            new (self) Question{.op = std::move(op),
                                .parameters = std::move(parameters),
                                .mesh = std::move(mesh),
                                .machine = std::move(machine),
                                .schedule = std::move(schedule),
                                .homes = std::move(homes),
                                .layout = std::move(layout)};
          },
          "op"_a, "parameters"_a, "mesh"_a, "machine"_a, "schedule"_a, "homes"_a, "layout"_a);
  nb::class_<CallOptions>(module, "CallOptions")
      .def(
          "__init__",
          [](CallOptions* self, std::optional<std::string> cache,
             std::optional<std::int64_t> patience_s, nb::object progress) {
            new (self) CallOptions{std::move(cache), patience_s, std::move(progress)};
          },
          "cache"_a.none(), "patience_s"_a.none(), "progress"_a.none());
}

void bind_plans(nb::module_& module) {
  module.def(
      "read_schedule",
      [](const Question& question, const CallOptions& given) {
        return call(given,
                    [&](const Options& options) { return read_schedule(question, options); });
      },
      "question"_a, "options"_a);
  nb::class_<Plan>(module, "Plan")
      .def_prop_ro("facts", &Plan::facts)
      .def_prop_ro("buffers", &Plan::buffers)
      .def_prop_ro("predicted", &Plan::predicted)
      .def_prop_ro("certificate", &Plan::certificate)
      .def_prop_ro("why", &Plan::why);
  module.def(
      "plan",
      [](const Question& question, const CallOptions& given) {
        return call(given, [&](const Options& options) { return plan(question, options); });
      },
      "question"_a, "options"_a);
  module.def(
      "parse_plan",
      [](const std::string& text, const CallOptions& given) {
        return call(given, [&](const Options& options) { return parse_plan(text, options); });
      },
      "text"_a, "options"_a);
  module.def(
      "show",
      [](const Plan& plan, const std::string& name) {
        const Stage stage = parse_stage(name);
        return call([&] { return show(plan, stage); });
      },
      "plan"_a, "stage"_a);
  module.def(
      "positions",
      [](const Plan& plan, const std::string& buffer, int rank) {
        return call([&] { return positions(plan, buffer, rank); });
      },
      "plan"_a, "buffer"_a, "rank"_a);
  module.def(
      "draw",
      [](const Plan& plan, bool svg) {
        const DrawingFormat format = svg ? DrawingFormat::Svg : DrawingFormat::Text;
        return call([&] { return draw(plan, format); });
      },
      "plan"_a, "svg"_a);
}

// Calls about a plan or a question.

void bind_answers(nb::module_& module) {
  module.def(
      "report",
      [](const Plan& plan, const std::string& machine) {
        return call([&] { return report(plan, machine); });
      },
      "plan"_a, "machine"_a);
  module.def(
      "simulate",
      [](const Plan& plan, const std::string& machine, bool host_launches,
         std::optional<std::pair<std::int64_t, double>> delay, bool trace) {
        const SimulateOptions options{
            .launch = host_launches ? LaunchMode::Host : LaunchMode::Graph,
            .delay = delay,
            .trace = trace};
        Simulation made = call([&] { return simulate(plan, machine, options); });
        return std::pair(std::move(made.prediction), std::move(made.trace));
      },
      "plan"_a, "machine"_a, "host_launches"_a, "delay"_a.none(), "trace"_a);
  module.def(
      "taxes",
      [](const Plan& plan, const std::string& machine) {
        return call([&] { return taxes(plan, machine); });
      },
      "plan"_a, "machine"_a);
  module.def(
      "compare",
      [](const Question& question, const CallOptions& given) {
        return call(given, [&](const Options& options) { return taxes(question, options); });
      },
      "question"_a, "options"_a);
  module.def(
      "tune",
      [](const Question& question, const CallOptions& given, std::int64_t top,
         std::optional<std::int64_t> budget_s, std::optional<std::int64_t> memory_bytes,
         bool exhaustive, bool any_placement) {
        TuneOptions tuning{.top = top,
                           .memory_bytes = memory_bytes,
                           .exhaustive = exhaustive,
                           .any_placement = any_placement};
        if (budget_s) tuning.budget = std::chrono::seconds(*budget_s);
        const Tuned tuned =
            call(given, [&](const Options& options) { return tune(question, tuning, options); });
        return std::pair<std::optional<Plan>, nb::typed<nb::dict, std::string, nb::any>>(
            tuned.best, list_fields(tuned));
      },
      "question"_a, "options"_a, "top"_a, "budget_s"_a.none(), "memory_bytes"_a.none(),
      "exhaustive"_a, "any_placement"_a);
}

// Execution.

// An array: address of the first element, type, shape, and strides in elements.
using Array =
    std::tuple<std::uintptr_t, std::string, std::vector<std::int64_t>, std::vector<std::int64_t>>;

DType parse_dtype(const std::string& name) {
  if (const std::optional<DType> dtype = find_dtype(name)) return *dtype;
  throw nb::value_error(("no element type `" + name + "`").c_str());
}

View to_view(const Array& array) {
  const auto& [address, dtype, shape, strides] = array;
  View view{.data = reinterpret_cast<void*>(address),
            .dtype = parse_dtype(dtype),
            .axes = shape.size(),
            .shape = {},
            .strides = {}};
  const std::size_t axes = std::min(shape.size(), kMostAxes);  // the library refuses more
  std::copy_n(shape.begin(), axes, view.shape.begin());
  std::copy_n(strides.begin(), axes, view.strides.begin());
  return view;
}

template <class Any>
std::map<std::string, Any> to_views(const std::map<std::string, Array>& arrays) {
  std::map<std::string, Any> views;
  for (const auto& [name, array] : arrays) views.emplace(name, to_view(array));
  return views;
}

using Ran = std::tuple<std::vector<double>, std::int64_t, std::int64_t, std::vector<Comparison>,
                       std::vector<std::pair<std::string, std::string>>>;

Ran run_on_arrays(const Plan& plan, const std::map<std::string, Array>& inputs,
                  const std::map<std::string, Array>& outputs, bool check, std::int64_t iterations,
                  std::int64_t wait_limit_ms, bool own_kernels, const CallOptions& given) {
  const auto from = to_views<ConstView>(inputs);
  const auto to = to_views<View>(outputs);
  RunOptions asked{.check = check,
                   .iterations = iterations,
                   .wait_limit = std::chrono::milliseconds(wait_limit_ms),
                   .cpu_kernels = own_kernels ? CpuKernels::Own : CpuKernels::Libraries};
  const RunResult result = call(given, [&](const Options& options) {
    asked.progress = options.progress;
    return run(plan, from, to, asked);
  });
  return {result.times_us, result.bytes_moved, result.copied_bytes, result.checks, result.products};
}

// Type, shape, elements.
using Drawn = std::tuple<DType, std::vector<std::int64_t>, nb::bytearray>;

std::map<std::string, Drawn> draw(const Plan& plan, std::uint64_t seed, const CallOptions& given) {
  const auto tensors = call(
      given, [&](const Options& options) { return draw_inputs(plan, seed, options.progress); });
  std::map<std::string, Drawn> drawn;
  for (const auto& [name, tensor] : tensors) {
    const nb::bytearray elements(tensor.data.data(), tensor.data.size());
    drawn.try_emplace(name, tensor.dtype, tensor.shape, elements);
  }
  return drawn;
}

void bind_runs(nb::module_& module) {
  module.def("run", &run_on_arrays, "plan"_a, "inputs"_a, "outputs"_a, "check"_a, "iterations"_a,
             "wait_limit_ms"_a, "own_kernels"_a, "options"_a);
  module.def("draw_inputs", &draw, "plan"_a, "seed"_a, "options"_a);
}

}  // namespace
}  // namespace harpe::python

NB_MODULE(_harpe, module) {
  harpe::python::bind_catalogue(module);
  harpe::python::bind_questions(module);
  harpe::python::bind_plans(module);
  harpe::python::bind_answers(module);
  harpe::python::bind_runs(module);
  harpe::python::bind_groups(module);
  harpe::python::bind_calls(module);
  harpe::python::bind_routes(module);
}
