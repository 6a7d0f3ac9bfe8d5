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

// Random programs of two to eight small nests with nearly cancelling sums, and schedules for them.
// Their meaning is computed a second time, in long double, by code independent of the compiler.
namespace harpe::testing_support {

struct ChainStep {
  std::string leaf;
  std::string target;
  std::vector<std::string> operands;
};

// Every value is a matrix. Rows of sums are matrices with one column.
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
  DType narrowest = DType::F32;  // of transferred values
};

[[nodiscard]] Chain draw_chain(std::uint64_t seed);
// A twin misses exact cancellation by 2^-2 to 2^-20 of its value, or by nothing.
[[nodiscard]] TensorMap draw_chain_inputs(const Chain& chain, std::uint64_t seed);

// Mistakes that a wrong schedule might make in one step, for some rows.
enum class Mistake : std::uint8_t {
  None,
  DropsChunk,    // of the contraction, or of the columns
  AddsTwice,     // one chunk of the contraction
  TakesWrong,    // one chunk of the other operand in place of another
  LosesOperand,  // skips the second operand of a pointwise step, or the step itself
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
  // A worst-case bound: no schedule with the roundings of these types has a larger error. It takes
  // every rounding and every cancellation at its worst.
  std::vector<long double> errors;
};
// The value of the output.
[[nodiscard]] ChainValue evaluate_chain(const Chain& chain, const TensorMap& inputs,
                                        const MistakeAt& mistake);

// The result of one program with one set of inputs.
struct ChainVerdict {
  bool accepted = false;  // the rules accept the schedule; else the rest is meaningless
  bool right = false;     // the results agree with the second computation
  bool passed = false;    // --check accepts the results
  double error = 0;       // relative to the check's bound
  int mistakes = 0;       // larger than any rounding
  int caught = 0;         // of these, found by --check
  std::string text;       // what to inspect if something is wrong
};
[[nodiscard]] ChainVerdict judge_chain(const Chain& chain, std::uint64_t seed, int mistakes);

struct ChainSweep {
  std::int64_t programs = 0;  // accepted ones
  std::int64_t seeds = 1;     // input sets per program
  std::int64_t first = 0;     // number of the first program
  int mistakes = 0;           // tried per program
};

struct ChainTally {
  std::int64_t programs = 0;
  std::int64_t refused = 0;
  std::int64_t runs = 0;
  std::int64_t wrong = 0;  // runs with wrong results
  std::int64_t red = 0;    // runs with right results that --check refused
  std::int64_t mistakes = 0;
  std::int64_t caught = 0;
  double worst = 0;  // error over bound, of right results
  [[nodiscard]] std::string print() const;
};
// Calls `report` for every program with wrong results or a false refusal.
[[nodiscard]] ChainTally sweep_chains(const ChainSweep& sweep,
                                      const std::function<void(const std::string&)>& report);

}  // namespace harpe::testing_support
