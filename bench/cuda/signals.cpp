#include "bench/cuda/signals.h"

#include <fmt/format.h>

#include <atomic>

namespace harpe::bench {
namespace {

// A sector per flag, so that one read does not load several flags.
constexpr std::int64_t kSpacing = 32;
constexpr std::int64_t kEpochWord = 0;
constexpr std::int64_t kPoisonWord = 1;
constexpr std::int64_t kFirstFlag = 2;
constexpr std::uint32_t kTask = 77;

}  // namespace

Signals::Signals(const Gpu& gpu, int flags, std::uint64_t limit_ns)
    : gpu_(&gpu),
      flags_(flags),
      limit_ns_(limit_ns),
      words_(gpu.memory((kFirstFlag + flags) * kSpacing)),
      fault_(gpu.host_memory(sizeof(device::FaultRecord))) {}

device::WaitContext Signals::context() const {
  const auto word = [&](std::int64_t index) {
    return at<std::uint32_t>(words_.address() + static_cast<Address>(index * kSpacing));
  };
  return {.epoch = word(kEpochWord),
          .ahead = 0,
          .poison = word(kPoisonWord),
          .fault = at<device::FaultRecord>(fault_.address()),
          .limit_ns = limit_ns_,
          .task = kTask,
          .sightings = nullptr,
          .notes = nullptr};
}

Address Signals::address(int index) const {
  return words_.address() + static_cast<Address>((kFirstFlag + index) * kSpacing);
}

device::FlagWait Signals::wait(int index, std::uint32_t arrivals) const {
  return {.flag = at<const std::uint32_t>(address(index)),
          .arrivals = arrivals,
          .name = static_cast<std::uint32_t>(index)};
}

std::int64_t Signals::bytes() const { return flags_ * kSpacing; }

void Signals::start_at(std::uint32_t epoch, std::uint32_t arrivals, CUstream stream) {
  epoch_ = epoch;
  gpu_->fill_words(words_.address(), 0, words_.bytes() / 4, stream);
  gpu_->fill_words(address(0), epoch * arrivals, bytes() / 4, stream);
}

void Signals::begin_epoch(CUstream stream) {
  ++epoch_;
  gpu_->write_word(words_.address() + kEpochWord * kSpacing, epoch_, stream);
}

void Signals::raise_all(std::uint32_t arrivals, CUstream stream) const {
  gpu_->fill_words(address(0), epoch_ * arrivals, bytes() / 4, stream);
}

device::FaultRecord Signals::record() const {
  // The kernel stores the state last, with release, so what is read after it is complete.
  device::FaultRecord* const shared = at<device::FaultRecord>(fault_.address());
  const std::uint32_t state = std::atomic_ref(shared->state).load(std::memory_order_acquire);
  device::FaultRecord record = *shared;
  record.state = state;
  return record;
}

std::string Signals::fault() const {
  const device::FaultRecord found = record();
  if (found.state == 0) return "";
  return fmt::format("block {} waited {:.3f} s on flag {} for {}, saw {}", found.block,
                     static_cast<double>(found.elapsed_ns) * 1e-9, found.name, found.expected,
                     found.seen);
}

void Signals::clear_fault(CUstream stream) {
  *at<device::FaultRecord>(fault_.address()) = {};
  gpu_->fill_words(words_.address() + kPoisonWord * kSpacing, 0, 1, stream);
}

}  // namespace harpe::bench
