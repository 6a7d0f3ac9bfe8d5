#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/cuda/bench.h"
#include "bench/cuda/courier.h"
#include "bench/cuda/kernels.h"
#include "bench/cuda/signals.h"

namespace harpe::bench {

// Options of the launches of a trial.
struct TrialOptions {
  std::uint32_t arrivals = 0;  // inputs arrive with flags growing by this; 0: inputs are in place
  bool all_arrive = false;     // in GEMMs also B, with the columns of A that it multiplies
  std::uint32_t first_epoch = 0;  // near 2^32, counters wrap
  bool counters = false;          // finished parts are counted, and copied out during the launch
  int copy_blocks = 0;            // thread blocks that copy the inputs; 0: none
  bool to_peer = false;           // results are on the second GPU
  std::int64_t pause_us = 40;     // most time between arrivals
  std::uint64_t limit_ns = 2'000'000'000;  // of each wait
};

// The locations of a subject's flags and counters.
struct TrialPlaces {
  Gpu* gpu = nullptr;
  Gpu* home = nullptr;                // of the results
  const Signals* signals = nullptr;   // flags, on `gpu`
  const Signals* counters = nullptr;  // on `home`
  CUstream stream = nullptr;          // of `gpu`
};

// A part of the results with a counter that is raised when it is finished.
struct CountedPart {
  std::uint32_t growth = 0;       // increment of its counter per launch
  std::vector<RowCopy> read_out;  // to offsets in a copy of all results
};

// A problem with the kernel that solves it; each family of kernels implements it.
class Subject {
 public:
  virtual ~Subject() = default;
  // Sets results to poison or their earlier values, and the memory of arriving inputs to poison.
  virtual void reset(CUstream stream) = 0;
  virtual void launch(Draw& draw, CUstream stream) = 0;
  // Arriving inputs, in the order of their flags 0, 1, …
  [[nodiscard]] virtual const std::vector<Parcel>& parcels() const = 0;
  // One for each counter.
  [[nodiscard]] virtual const std::vector<CountedPart>& parts() const = 0;
  [[nodiscard]] virtual std::int64_t result_bytes() const = 0;
  // Compares the results with the reference, and checks the poison around them.
  virtual void check(Verdict* verdict, CUstream stream) = 0;
  // The same for a copy of the results, made of the parts.
  virtual void check_copy(Address copy, Verdict* verdict, CUstream stream) = 0;
  [[nodiscard]] virtual std::int64_t columns() const = 0;  // of the results, for messages
};

using MakeSubject = std::function<std::unique_ptr<Subject>(const TrialPlaces& places, Draw& draw)>;

// Launches a subject repeatedly, resetting only its data, and checks each outcome.
class Trial {
 public:
  Trial(Bench& bench, const TrialOptions& options, std::uint64_t seed, const MakeSubject& make);

  // "", or what was wrong in the first launch with an error.
  [[nodiscard]] std::string run(int launches);
  // Makes one launch in which one parcel never arrives; it must end with a fault. Then one good
  // launch.
  [[nodiscard]] std::string run_without_a_parcel();
  // The largest error, in bounds.
  [[nodiscard]] double worst() const { return worst_; }

 private:
  void begin();
  void read_out();
  [[nodiscard]] std::string launch_once();
  [[nodiscard]] std::string look();
  [[nodiscard]] std::string look_at_counters() const;
  [[nodiscard]] std::string look_at_fault(int missing, double seconds) const;

  Gpu* gpu_;
  Gpu* home_;
  TrialOptions options_;
  Draw draw_;
  CUstream stream_;
  Signals signals_;
  Signals counters_;
  Courier courier_;
  VerdictBox verdict_;
  CUstream reader_;
  CUstream side_;
  cuda::MappedMemory words_;  // the counters, read back
  std::unique_ptr<Subject> subject_;
  std::optional<cuda::MappedMemory> copy_;  // of results, copied when they were counted
  std::vector<std::uint32_t> counted_;
  double worst_ = 0;
};

// A trial as one row of a report.
struct NamedTrial {
  std::string experiment{};
  std::string name{};
  TrialOptions options{};
  int launches = 1;
  bool without_a_parcel = false;
};
void run_trial(Bench& bench, const NamedTrial& named, std::uint64_t seed, const MakeSubject& make);

}  // namespace harpe::bench
