#include "tests/unit/search/cases.h"

#include <algorithm>

#include "compile/machines.h"
#include "compile/session.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "support/check.h"

namespace harpe {
namespace {

template <class T>
T expect(Checked<T> checked) {
  HP_CHECK(checked.ok(), checked.ok() ? "" : render(checked.error()));
  return std::move(checked).value();
}

NormalForm first_form(const Case& one) {
  for (const Applicability& schedule : find_applicable(one.text.op, one.program, one.mesh)) {
    if (schedule.script.ok()) return expect(replay(one.program, one.mesh, *schedule.script));
  }
  HP_CHECK(false, print(one.text) + " has no schedule");
  return {};
}

// A form's homes, with axes in place of digits.
std::vector<Place> homes_in(const NormalForm& form) {
  std::vector<Place> places = form.places;
  for (Place& place : places) {
    for (Placement& at : place.at) {
      for (const Split& split : form.splits) {
        const auto found = std::ranges::find(split.digits, at.digit, &Digit::name);
        if (found == split.digits.end()) continue;
        at.digit = split.axis;
        break;
      }
    }
  }
  return places;
}

std::string level_line(const std::string& name, const std::string& kind, int size,
                       double gigabytes) {
  const std::string from = " from assumed \"test\"\n";
  const std::string rate = std::to_string(gigabytes) + "gbs";
  return "  level " + name + " " + kind + " size=" + std::to_string(size) + " bandwidth=" + rate +
         " latency=1us" + from + "  transport ce at " + name + " start=2us bandwidth=" + rate +
         from + "  transport tma at " + name + " start=1us bandwidth=" + rate + " sms=1" + from +
         "  transport sm at " + name + " start=1us bandwidth=" + rate + " sms=1" + from +
         "  transport nccl at " + name + " start=10us bandwidth=" + rate + " sms=1" + from;
}

Machine machine_of(const std::string& levels, double memory_gib, double teraflops) {
  const std::string from = " from assumed \"test\"\n";
  const std::string peak = " peak=" + std::to_string(teraflops) +
                           "tflops tile_rows=1 tile_columns=1 half_depth=0 memory_share=1 "
                           "start=0us" +
                           from;
  return expect(parse_machine(
      "machine test {\n  about \"round figures\"\n"
      "  processor p sms=8 memory=" +
          std::to_string(memory_gib) +
          "gib bandwidth=1000gbs cache=1mib kernel_start=2us "
          "kernel_issue=3us event=1us" +
          from + levels + "  rate matmul *" + peak + "  rate attn_fwd *" + peak +
          "  rate attn_bwd *" + peak + "  rate * * memory_share=1 start=0us" + from + "}\n",
      "test.machine"));
}

}  // namespace

std::string print(const CaseText& text) {
  std::string out = text.op;
  for (const std::string& parameter : text.parameters) out += " " + parameter;
  return out + " on " + text.mesh + " of " + text.machine +
         (text.contract == Contract::Free ? ", free" : "");
}

SearchOptions Case::options() const {
  SearchOptions options;
  options.family = text.op;
  options.contract = text.contract;
  options.cuts = text.cuts;
  options.constraints.homes = fixed;
  return options;
}

std::unique_ptr<Case> make_case(const CaseText& text) {
  return make_case(text, expect(load_machine(text.machine)));
}

std::unique_ptr<Case> make_named_case(const CaseText& text) {
  return make_named_case(text, expect(load_machine(text.machine)));
}

std::unique_ptr<Case> make_named_case(const CaseText& text, const Machine& machine) {
  auto one = std::make_unique<Case>();
  one->text = text;
  Session session(false);
  const Request request{.target = text.op,
                        .parameters = text.parameters,
                        .inputs = {},
                        .mesh = text.mesh,
                        .schedule = std::nullopt};
  one->program = expect(session.program(request));
  one->mesh = expect(session.mesh(request));
  one->machine = machine;
  one->standard = first_form(*one);
  return one;
}

std::unique_ptr<Case> make_case(const CaseText& text, const Machine& machine) {
  auto one = make_named_case(text, machine);
  if (!text.homes_of.empty()) one->fixed = homes_in(named_form(*one, text.homes_of));
  one->problem = expect(make_problem(one->program, one->mesh, one->standard, one->options()));
  return one;
}

std::vector<Candidate> candidates_of(const Case& one) {
  std::vector<Candidate> all;
  const SpaceOptions options{.contract = one.text.contract, .cuts = one.text.cuts};
  for (const Candidate& skeleton : enumerate_skeletons(one.problem, options)) {
    for_each_variant(one.problem, skeleton, [&](const Candidate& each) { all.push_back(each); });
  }
  return all;
}

NormalForm named_form(const Case& one, const std::string& schedule) {
  const Script script = expect(generate_schedule(one.text.op, schedule, one.program, one.mesh));
  return expect(replay(one.program, one.mesh, script));
}

Machine node_machine(const Pairs& pairs) {
  const std::string from = " from assumed \"test\"\n";
  const std::string rate = std::to_string(100 / pairs.slowness) + "gbs";
  const std::string rails =
      "  level rail rail size=" + std::to_string(pairs.nodes) + " bandwidth=" + rate +
      " latency=5us messages=1000000 proxy_post=1us proxy_fence=2us" + from +
      "  transport proxy at rail start=2us bandwidth=" + rate + from +
      "  transport nccl at rail start=20us bandwidth=" + rate + " sms=1" + from;
  return machine_of(level_line("link", "switch", pairs.gpus, 100) + rails, pairs.memory_gib,
                    pairs.teraflops);
}

Machine flat_machine(const std::string& kind, int ranks, double gigabytes, double teraflops) {
  return machine_of(level_line("link", kind, ranks, gigabytes), 64, teraflops);
}

}  // namespace harpe
