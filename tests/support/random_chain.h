#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "ir/tensor.h"
#include "machine/mesh.h"

// Random programs of two to eight small nests whose sums cancel, with schedules for them, and what
// they mean: computed a second time, in long double, by code that shares nothing with the compiler.
namespace harpe::testing_support {

struct ChainStep {
  std::string leaf;
  std::string target;
  std::vector<std::string> operands;
};

// Every value is a matrix, but for rows of sums, which have one column.
struct Chain {
  std::string program;  // texts
  std::string mesh;
  std::string form;
  std::vector<ChainStep> steps;
  std::map<std::string, DType> types;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> shapes;
  std::map<std::string, std::string> twins;  // input -> the input that it nearly cancels
  std::string output;
  std::int64_t ranks = 1;
  DType narrowest = DType::F32;  // of what travels
};

[[nodiscard]] Chain draw_chain(std::uint64_t seed);
// Twins differ by 2^-2 to 2^-20 of themselves, or by nothing.
[[nodiscard]] TensorMap draw_chain_inputs(const Chain& chain, std::uint64_t seed);

// What a schedule that is wrong might do to one step, for some rows.
enum class Mistake : std::uint8_t {
  None,
  DropsChunk,    // of the contraction, or of the columns
  AddsTwice,     // one chunk of the contraction
  TakesWrong,    // one chunk of the other operand in place of another
  LosesOperand,  // a pointwise step without its second operand, or undone
};

struct MistakeAt {
  Mistake mistake = Mistake::None;
  std::size_t step = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first = 0;  // of the chunk
  std::int64_t count = 0;
};
[[nodiscard]] MistakeAt draw_mistake(const Chain& chain, std::uint64_t seed);

struct ChainValue {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<long double> values;
  // No schedule whose roundings are those that the types explain errs by more: a worst case, every
  // rounding and every cancellation taken at its worst.
  std::vector<long double> errors;
};
// Of the output.
[[nodiscard]] ChainValue evaluate_chain(const Chain& chain, const TensorMap& inputs,
                                        const MistakeAt& mistake);

// What came of one program with one set of inputs.
struct ChainVerdict {
  bool accepted = false;  // the schedule, by the rules; nothing else counts where it is not
  bool right = false;     // the results agree with the second computation
  bool passed = false;    // --check says so
  double error = 0;       // over the check's bound
  int mistakes = 0;       // that no rounding explains
  int caught = 0;         // of these
  std::string text;       // what to look at where something is wrong
};
[[nodiscard]] ChainVerdict judge_chain(const Chain& chain, std::uint64_t seed, int mistakes);

struct ChainSweep {
  std::int64_t programs = 0;  // that are accepted
  std::int64_t seeds = 1;     // of inputs, each
  std::int64_t first = 0;     // which program comes first
  int mistakes = 0;           // tried with each
};

struct ChainTally {
  std::int64_t programs = 0;
  std::int64_t refused = 0;
  std::int64_t runs = 0;
  std::int64_t wrong = 0;  // runs whose results are not right
  std::int64_t red = 0;    // runs whose results are right, and the check failed
  std::int64_t mistakes = 0;
  std::int64_t caught = 0;
  double worst = 0;  // error over bound, of right results
  [[nodiscard]] std::string print() const;
};
// Calls `report` with every program that is wrong or red.
[[nodiscard]] ChainTally sweep_chains(const ChainSweep& sweep,
                                      const std::function<void(const std::string&)>& report);

}  // namespace harpe::testing_support
