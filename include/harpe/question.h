#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"

namespace harpe {
HARPE_INLINE namespace v1 {
// The value of a parameter: 4096, true, "bf16".
using Value = std::variant<std::int64_t, bool, std::string>;

// What is asked for: an operator, its sizes over all ranks, and where it should run.
struct Question {
  std::string op;  // a name of operators(), a file that ends in `.op`, or the text of one
  std::map<std::string, Value> parameters;  // {"m", 4096}; those left out have their defaults
  std::string mesh;  // axes of the ranks, major first: "cp=8", "node=2,gpu=4"
  // A name of machines(), a file that ends in `.machine`, or the text of one: what a search
  // minimizes the time on, and what the plan's predicted time is of. "": a search takes the
  // smallest shipped machine of H200 hosts that the mesh fits on, and the plan has no predicted
  // time.
  std::string machine = {};
  // A name of schedules(), a file that ends in `.sched`, the text of one, or "auto": the one that a
  // search chooses.
  std::string schedule = "auto";
  // Who holds what of inputs and outputs; schedules keep to it, and one named here that does not is
  // refused. By buffer, the mesh axes that divide its axes: {"k", "Skv@cp"}, {"q", "B@dp,Sq@cp"};
  // {"q", ""} is a copy on every rank. Others live as the schedule says.
  std::map<std::string, std::string> homes = {};
  // Which positions a rank holds of axes that are divided: "contiguous", a range in the order of
  // the ranks; "zigzag", where masks go by positions, a range from the front and the same one
  // counted from the back; "any", as suits the schedule.
  std::string layout = "any";
};

// Called now and then during long work, from the calling thread; must not throw. False gives the
// work up, and the call returns the error I505; tune() returns what it has found so far. `of` is 0
// where the amount of work is not known.
using Progress = std::function<bool(std::string_view stage, std::int64_t done, std::int64_t of)>;

// What holds for any call. The library reads no environment variable and writes no file but below
// `cache`.
struct Options {
  // A folder where searches keep their answers, for `auto` and for tune(). The command line's is
  // ~/.cache/harpe; answers of other builds of Harpe are passed over. None: nothing is read or
  // kept.
  std::optional<std::string> cache = {};
  // How long a search for `auto` may take; then the call returns the error I505. None: any time.
  std::optional<std::chrono::seconds> patience = {};
  Progress progress = {};
  std::function<void(const std::string& text)> warn = {};  // of what was passed over, not refused
};

// What there is to ask for.

struct ParameterInfo {
  std::string name;
  std::string kind;   // "integer", "bool", …
  std::string value;  // the default; the name of another parameter where it follows that one
};
struct BufferInfo {
  std::string name;
  std::string role;                // "in", "out"
  std::string dtype;               // "f32", or the parameter that names it
  std::vector<std::string> shape;  // per dimension, in terms of the parameters
  std::string condition;           // of an input: the parameter that turns it on; or ""
};
struct OperatorInfo {
  std::string name;
  std::string summary;  // "" where it is not shipped
  std::vector<ParameterInfo> parameters;
  std::vector<BufferInfo> buffers;
  std::string text;  // of its `.op` file, in the canonical form and without comments
};
[[nodiscard]] HARPE_API Checked<std::vector<OperatorInfo>> operators();
// Of an operator as in Question. Errors: U108; T0xx and P0xx of a text.
[[nodiscard]] HARPE_API Checked<OperatorInfo> describe(const std::string& op);

struct MachineInfo {
  std::string name;     // "h200x8"
  std::string summary;  // "eight H200 behind NVSwitch"
  std::int64_t processors = 0;
  std::string levels;  // what joins them, innermost first: "8 nvlink x 16 rail"
  std::string text;    // of its `.machine` file
};
[[nodiscard]] HARPE_API Checked<std::vector<MachineInfo>> machines();  // that are shipped

struct ScheduleInfo {
  std::string name;
  std::string summary;
  std::optional<Error> refusal;  // why it does not apply; none where it does
};
// The named schedules of the question's operator on its mesh. Errors: those of plan() about the
// operator, its parameters and the mesh.
[[nodiscard]] HARPE_API Checked<std::vector<ScheduleInfo>> schedules(const Question& question);

// A schedule as the list of primitives that make it (docs/schedules.md).
struct Script {
  std::string name;
  std::string mesh;                // as the text calls it
  std::vector<std::string> steps;  // "shard(q, q0, gpu)"
  std::string text;                // of its `.sched` file, in the canonical form
  std::string form;  // what the steps make of the program: its blocks, loops and moves (docs/ir.md)
};
// The question's schedule, each step checked against those before it; a text may end anywhere. Of a
// normal form, steps that make it. Errors: those of plan() but of the lowering and the proof.
[[nodiscard]] HARPE_API Checked<Script> read_schedule(const Question& question,
                                                      const Options& options = {});

}  // namespace v1
}  // namespace harpe
