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

// What to plan: an operator, its sizes over all ranks, and where it runs.
struct Question {
  std::string op;  // a name from operators(), the path of a `.op` file, or the text of one
  std::map<std::string, Value> parameters;  // {"m", 4096}; missing ones have their defaults
  std::string mesh;  // axes of the ranks, major first: "cp=8", "node=2,gpu=4"
  // A name from machines(), the path of a `.machine` file, or the text of one. A search minimizes
  // the time on this machine, and the plan's predicted time is for it. If "", a search uses the
  // smallest shipped machine of H200 hosts that the mesh fits on, and the plan has no predicted
  // time.
  std::string machine = {};
  // A name from schedules(), the path of a `.sched` file, the text of one, or "auto": a search
  // chooses the schedule.
  std::string schedule = "auto";
  // Which rank holds which part of inputs and outputs. Searches keep to it, and a schedule given
  // here that contradicts it is refused. Each buffer maps to the mesh axes that divide its axes:
  // {"k", "Skv@cp"}, {"q", "B@dp,Sq@cp"}; {"q", ""} is a full copy on every rank. The schedule
  // places all other buffers.
  std::map<std::string, std::string> homes = {};
  // Which positions of a divided axis a rank holds. "contiguous": one range, in the order of the
  // ranks. "zigzag", on axes whose positions masks read: a range from the front and the same one
  // counted from the back. "any": what suits the schedule.
  std::string layout = "any";
};

// Called repeatedly during long work, in the calling thread; must not throw. If it returns false,
// the call ends with the error I505, and tune() returns what it has found so far. `of` is 0 if the
// amount of work is unknown.
using Progress = std::function<bool(std::string_view stage, std::int64_t done, std::int64_t of)>;

// Options of any call. The library reads no environment variable and writes files only below
// `cache`.
struct Options {
  // A folder in which searches keep their answers, for `auto` and for tune(). The command line uses
  // ~/.cache/harpe. Answers of other builds of Harpe are ignored. None: searches read and keep
  // nothing.
  std::optional<std::string> cache = {};
  // Time limit of a search for `auto`, after which the call returns the error I505. None: no limit.
  std::optional<std::chrono::seconds> patience = {};
  Progress progress = {};
  std::function<void(const std::string& text)> warn = {};  // of what was ignored, not refused
};

// What a question can name.

struct ParameterInfo {
  std::string name;
  std::string kind;   // "integer", "bool", …
  std::string value;  // the default; or the name of the parameter whose value it takes
};
struct BufferInfo {
  std::string name;
  std::string role;                // "in", "out"
  std::string dtype;               // "f32", or the parameter that names it
  std::vector<std::string> shape;  // per dimension, in terms of the parameters
  std::string condition;           // for an optional input: the parameter that turns it on; or ""
};
struct OperatorInfo {
  std::string name;
  std::string summary;  // "" for an operator that is not shipped
  std::vector<ParameterInfo> parameters;
  std::vector<BufferInfo> buffers;
  std::string text;  // of its `.op` file, in the canonical form and without comments
};
[[nodiscard]] HARPE_API Checked<std::vector<OperatorInfo>> operators();
// Describes an operator, named as in Question. Errors: U108; T0xx and P0xx about a text.
[[nodiscard]] HARPE_API Checked<OperatorInfo> describe(const std::string& op);

struct MachineInfo {
  std::string name;     // "h200x8"
  std::string summary;  // "eight H200 behind NVSwitch"
  std::int64_t processors = 0;
  std::string levels;  // how they are connected, innermost first: "8 nvlink x 16 rail"
  std::string text;    // of its `.machine` file
};
[[nodiscard]] HARPE_API Checked<std::vector<MachineInfo>> machines();  // the shipped ones

struct ScheduleInfo {
  std::string name;
  std::string summary;
  std::optional<Error> refusal;  // why it does not apply; none if it applies
};
// The named schedules of the question's operator on its mesh. Errors: those of plan() about the
// operator, its parameters and the mesh.
[[nodiscard]] HARPE_API Checked<std::vector<ScheduleInfo>> schedules(const Question& question);

// A schedule as the list of primitives that make it (docs/schedules.md).
struct Script {
  std::string name;
  std::string mesh;                // as the text names it
  std::vector<std::string> steps;  // "shard(q, q0, gpu)"
  std::string text;                // of its `.sched` file, in the canonical form
  std::string form;  // the normal form that the steps produce: blocks, loops and moves (docs/ir.md)
};
// Reads the question's schedule and checks each step against the steps before it; a text may end
// after any step. For a normal form, it finds steps that produce it. Errors: plan()'s, except those
// of the lowering and the proof.
[[nodiscard]] HARPE_API Checked<Script> read_schedule(const Question& question,
                                                      const Options& options = {});

}  // namespace v1
}  // namespace harpe
