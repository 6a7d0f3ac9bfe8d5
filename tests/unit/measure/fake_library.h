#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/interpret.h"
#include "measure/library_ways.h"

namespace harpe {

// The behaviour of a library that does not exist.
struct FakeLibrary {
  std::string name;
  std::chrono::nanoseconds time{0};  // reported per execution
  double factor = 1;                 // scale error of its results
  bool is_missing = false;
  bool ends_in_fault = false;
};

// Returns the program's meaning, rounded to the outputs' types.
class FakeLibraryExecutor final : public Executor {
 public:
  FakeLibraryExecutor(Program program, FakeLibrary what)
      : program_(std::move(program)), what_(std::move(what)) {}

  Checked<Ok> set_input(const std::string& buffer, const HostTensor& tensor) override {
    inputs_[buffer] = tensor;
    return Ok{};
  }
  Result<RunStats, FaultReport> run(const RunOptions& options) override {
    if (what_.ends_in_fault) {
      return FaultReport{Fault{.kind = FaultKind::DeviceFailed, .signal = "ncclAllGather"}};
    }
    RunStats stats;
    stats.iterations.assign(static_cast<std::size_t>(options.iterations), what_.time);
    return stats;
  }
  Checked<HostTensor> output(const std::string& buffer) const override {
    HP_TRY(const Meaning meaning, interpret(program_, inputs_, std::nullopt, 1));
    HostTensor whole = meaning.outputs.at(buffer);
    for (std::int64_t i = 0; i < element_count(whole); ++i) {
      store(whole, i, load(whole, i) * what_.factor);
    }
    return convert(whole, find_buffer(program_, buffer)->dtype);
  }

 private:
  Program program_;
  FakeLibrary what_;
  TensorMap inputs_;
};

inline FindWays find_fakes(const std::vector<FakeLibrary>& libraries) {
  return [libraries](const Program& program, std::int64_t,
                     const TensorMap&) -> Checked<std::vector<LibraryWay>> {
    std::vector<LibraryWay> ways;
    for (const FakeLibrary& one : libraries) {
      ways.push_back({one.name, [program, one]() -> Checked<LibraryExecutor> {
                        if (one.is_missing) {
                          return make_diag(DiagCode::G081,
                                           {{"what", "GEMMs"}, {"reason", "nothing is there"}});
                        }
                        return LibraryExecutor{std::make_unique<FakeLibraryExecutor>(program, one),
                                               {}};
                      }});
    }
    return ways;
  };
}

}  // namespace harpe
