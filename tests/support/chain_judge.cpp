#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ir/program_check.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "run/check.h"
#include "run/run.h"
#include "support/check.h"
#include "tests/support/random_chain.h"
#include "verify/verify.h"

namespace harpe::testing_support {
namespace {

template <class Value>
Value parse_text(const std::string& text, Checked<Value> (*parse)(Cursor&)) {
  Checked<Cursor> cursor = Cursor::open(text);
  HP_CHECK(cursor.ok(), render(cursor.error()));
  Checked<Value> value = parse(cursor.value());
  HP_CHECK(value.ok(), render(value.error()) + "\n" + text);
  return std::move(value).value();
}

bool agrees(const HostTensor& got, const ChainValue& wanted) {
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    const auto x = static_cast<long double>(load(got, static_cast<std::int64_t>(i)));
    if (!(std::abs(x - wanted.values[i]) <= wanted.errors[i])) return false;
  }
  return true;
}

HostTensor round_values(const ChainValue& value, DType type) {
  HostTensor tensor = make_tensor(type, {value.rows, value.columns});
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    store(tensor, static_cast<std::int64_t>(i), static_cast<double>(value.values[i]));
  }
  return tensor;
}

// Gives the check results with one mistake each, and counts those that it finds.
void count_mistakes(const Chain& chain, const Plan& plan, const TensorMap& inputs,
                    const ChainValue& exact, std::uint64_t seed, int mistakes,
                    ChainVerdict& verdict) {
  const Checked<Reference> reference = make_reference({&plan}, inputs, seed, 1);
  HP_CHECK(reference.ok(), render(reference.error()));
  for (int i = 0; i < mistakes; ++i) {
    const MistakeAt mistake = draw_mistake(chain, seed * 64 + static_cast<std::uint64_t>(i));
    const ChainValue wrong = evaluate_chain(chain, inputs, mistake);
    TensorMap outputs;
    outputs.emplace(chain.output, round_values(wrong, chain.types.at(chain.output)));
    if (agrees(outputs.at(chain.output), exact)) continue;
    ++verdict.mistakes;
    verdict.caught += compare_outputs(plan, outputs, *reference).passed() ? 0 : 1;
  }
}

}  // namespace

ChainVerdict judge_chain(const Chain& chain, std::uint64_t seed, int mistakes) {
  ChainVerdict verdict;
  verdict.text = chain.program + chain.mesh + "\n" + chain.form;
  const Program program = parse_text(chain.program, &parse_program);
  const Mesh mesh = parse_text(chain.mesh, &parse_mesh);
  const NormalForm form = parse_text(chain.form, &parse_form);
  const Checked<Plan> plan = lower(program, mesh, form);
  if (!plan.ok()) {
    verdict.text += render(plan.error()) + "\n";
    return verdict;
  }
  verdict.accepted = true;
  const Checked<Certificate> certificate = verify(*plan);
  HP_CHECK(certificate.ok(), render(certificate.error()) + "\n" + verdict.text);
  const TensorMap inputs = draw_chain_inputs(chain, seed);
  RunRequest request;
  request.check = true;
  const auto executor = make_executor(*plan, request.backend);
  HP_CHECK(executor.ok(), render(executor.error()));
  for (const auto& [name, tensor] : inputs)
    HP_CHECK((*executor)->set_input(name, tensor).ok(), name);
  HP_CHECK((*executor)->run({}).ok(), "a fault\n" + verdict.text);
  const Checked<TensorMap> outputs = gather_outputs(**executor, program);
  HP_CHECK(outputs.ok(), render(outputs.error()));
  const ChainValue exact = evaluate_chain(chain, inputs, {});
  verdict.right = agrees(outputs->at(chain.output), exact);
  const Checked<CheckReport> report = check_outputs(*plan, inputs, *outputs, seed, 1);
  HP_CHECK(report.ok(), render(report.error()));
  verdict.passed = report->passed();
  verdict.error = report->outputs[0].error / report->outputs[0].bound;
  if (!verdict.passed) verdict.text += render(failure_of(*report)) + "\n";
  count_mistakes(chain, *plan, inputs, exact, seed, mistakes, verdict);
  return verdict;
}

ChainTally sweep_chains(const ChainSweep& sweep,
                        const std::function<void(const std::string&)>& report) {
  ChainTally tally;
  for (std::int64_t number = sweep.first; tally.programs < sweep.programs; ++number) {
    const Chain chain = draw_chain(static_cast<std::uint64_t>(number));
    for (std::int64_t seed = 1; seed <= sweep.seeds; ++seed) {
      const ChainVerdict verdict =
          judge_chain(chain, static_cast<std::uint64_t>(number * 16 + seed), sweep.mistakes);
      if (!verdict.accepted) break;
      if (seed == 1) ++tally.programs;
      ++tally.runs;
      tally.wrong += verdict.right ? 0 : 1;
      tally.red += verdict.right && !verdict.passed ? 1 : 0;
      tally.mistakes += verdict.mistakes;
      tally.caught += verdict.caught;
      if (verdict.right) tally.worst = std::max(tally.worst, verdict.error);
      if (verdict.right && verdict.passed) continue;
      report((verdict.right ? "red: program " : "wrong: program ") + std::to_string(number) +
             ", seed " + std::to_string(seed) + "\n" + verdict.text);
    }
    tally.refused = number + 1 - sweep.first - tally.programs;
  }
  return tally;
}

std::string ChainTally::print() const {
  std::array<char, 16> share{};
  std::snprintf(share.data(), share.size(), "%.2f", worst);
  return std::to_string(programs) + " programs, " + std::to_string(refused) + " refused; " +
         std::to_string(runs) + " runs: " + std::to_string(wrong) + " wrong, " +
         std::to_string(red) + " right and red, errors up to " + share.data() +
         " of their bounds; " + std::to_string(mistakes) + " mistakes, " + std::to_string(caught) +
         " caught";
}

}  // namespace harpe::testing_support
