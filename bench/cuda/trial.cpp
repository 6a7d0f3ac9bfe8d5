#include "bench/cuda/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace harpe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFlags = 64;  // for inputs, and as many counters

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trial::Trial(Bench& bench, const TrialOptions& options, std::uint64_t seed, const MakeSubject& make)
    : gpu_(&bench.gpu()),
      home_(options.to_peer ? bench.peer() : &bench.gpu()),
      options_(options),
      draw_(seed),
      stream_(bench.stream()),
      signals_(*gpu_, kFlags, options.limit_ns),
      counters_(*home_, kFlags, options.limit_ns),
      courier_(*gpu_, signals_, std::max(options.arrivals, 1U)),
      verdict_(*gpu_),
      reader_(home_->new_stream()),
      side_(home_->new_stream()),
      words_(home_->host_memory(counters_.bytes())) {
  counters_.start_at(0, 1, reader_);
  home_->synchronise(reader_);
  signals_.start_at(options.first_epoch, std::max(options.arrivals, 1U), stream_);
  gpu_->synchronise(stream_);
  gpu_->enter();
  subject_ = make(
      {.gpu = gpu_, .home = home_, .signals = &signals_, .counters = &counters_, .stream = stream_},
      draw_);
  if (options.counters) copy_ = home_->host_memory(subject_->result_bytes());
  counted_.assign(subject_->parts().size(), 0);
  gpu_->synchronise(stream_);
}

void Trial::begin() {
  signals_.begin_epoch(stream_);
  subject_->reset(stream_);
  courier_.follow(stream_);
  verdict_.clear(stream_);
}

// The copy engine copies a part out as soon as it is counted.
void Trial::read_out() {
  const std::vector<CountedPart>& parts = subject_->parts();
  for (std::size_t index = 0; index < parts.size(); ++index) {
    counted_[index] += parts[index].growth;
    home_->wait_for_word(counters_.address(static_cast<int>(index)), counted_[index], reader_);
    for (RowCopy rows : parts[index].read_out) {
      rows.to += copy_->address();
      home_->copy_rows(rows, reader_);
    }
  }
}

std::string Trial::launch_once() {
  begin();
  subject_->launch(draw_, stream_);
  if (options_.counters) read_out();
  if (options_.arrivals > 0) {
    const auto& parcels = subject_->parcels();
    courier_.deliver(parcels, draw_.order(parcels.size()), draw_, options_.pause_us);
  }
  gpu_->synchronise(stream_);
  gpu_->synchronise(courier_.stream());
  if (const std::string fault = signals_.fault(); !fault.empty()) return fault;
  return look();
}

std::string Trial::look() {
  if (options_.counters) {
    if (std::string wrong = look_at_counters(); !wrong.empty()) return wrong;
    home_->synchronise(reader_);
    subject_->check_copy(copy_->address(), verdict_.device(), stream_);
  }
  subject_->check(verdict_.device(), stream_);
  const Verdict verdict = verdict_.read(stream_);
  worst_ = std::max(worst_, worst_ratio(verdict));
  return describe(verdict, subject_->columns());
}

std::string Trial::look_at_counters() const {
  home_->copy(words_.address(), counters_.address(0), counters_.bytes(), side_);
  home_->synchronise(side_);
  for (std::size_t index = 0; index < counted_.size(); ++index) {
    const Address offset = counters_.address(static_cast<int>(index)) - counters_.address(0);
    std::uint32_t seen = 0;
    std::memcpy(&seen, words_.host().data() + offset, sizeof(seen));
    if (seen != counted_[index]) {
      return fmt::format("part {} was counted to {}, not {}", index, seen, counted_[index]);
    }
  }
  return "";
}

std::string Trial::run(int launches) {
  for (int launch = 0; launch < launches; ++launch) {
    if (const std::string wrong = launch_once(); !wrong.empty()) {
      return fmt::format("launch {}: {}", launch, wrong);
    }
  }
  return "";
}

std::string Trial::look_at_fault(int missing, double seconds) const {
  const device::FaultRecord fault = signals_.record();
  const std::uint32_t expected = signals_.epoch() * options_.arrivals;
  if (fault.state != 1) return "the kernel ended without a whole fault record";
  if (fault.name != static_cast<std::uint32_t>(missing) || fault.expected != expected ||
      fault.seen != expected - options_.arrivals) {
    return fmt::format("the fault names flag {} for {}, saw {}; it is flag {} for {}, at {}",
                       fault.name, fault.expected, fault.seen, missing, expected,
                       expected - options_.arrivals);
  }
  const double limit = static_cast<double>(options_.limit_ns) * 1e-9;
  if (seconds > 3 * limit + 0.5) {
    return fmt::format("the kernel ended after {:.2f} s, with a limit of {:.2f} s", seconds, limit);
  }
  return "";
}

std::string Trial::run_without_a_parcel() {
  begin();
  const auto start = Clock::now();
  subject_->launch(draw_, stream_);
  std::vector<int> order = draw_.order(subject_->parcels().size());
  const int missing = order.back();
  order.pop_back();
  courier_.deliver(subject_->parcels(), order, draw_, options_.pause_us);
  gpu_->synchronise(stream_);
  const double seconds = seconds_since(start);
  gpu_->synchronise(courier_.stream());
  if (std::string wrong = look_at_fault(missing, seconds); !wrong.empty()) return wrong;
  signals_.clear_fault(stream_);
  const std::string after = launch_once();
  return after.empty() ? "" : "the launch after the fault: " + after;
}

void run_trial(Bench& bench, const NamedTrial& named, std::uint64_t seed, const MakeSubject& make) {
  if (!bench.report().begins(named.experiment, named.name)) return;
  Trial trial(bench, named.options, seed, make);
  std::string wrong;
  if (!named.without_a_parcel) wrong = trial.run(named.launches);
  for (int turn = 0; named.without_a_parcel && turn < named.launches && wrong.empty(); ++turn) {
    wrong = trial.run_without_a_parcel();
  }
  bench.report().add_check(
      named.experiment, named.name, wrong,
      {{"launches", std::int64_t{named.launches}}, {"worst / bound", trial.worst()}});
}

}  // namespace harpe::bench
