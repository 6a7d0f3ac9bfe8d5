#include "bench/cuda/courier.h"

#include <chrono>

namespace harpe::bench {

void pause_host(std::int64_t microseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < until) {
  }
}

Courier::Courier(Gpu& gpu, const Signals& signals, std::uint32_t arrivals)
    : gpu_(&gpu),
      signals_(&signals),
      arrivals_(arrivals),
      stream_(gpu.new_stream()),
      event_(gpu.new_event()) {}

void Courier::follow(CUstream stream) {
  gpu_->record(event_, stream);
  gpu_->wait_for(stream_, event_);
}

void Courier::deliver(const std::vector<Parcel>& parcels, const std::vector<int>& order, Draw& draw,
                      std::int64_t pause_us) {
  const std::uint32_t target = signals_->epoch() * arrivals_;
  const auto pause = [&] {
    if (pause_us > 0) pause_host(draw.below(pause_us));
  };
  for (const int index : order) {
    const Parcel& parcel = parcels[static_cast<std::size_t>(index)];
    pause();
    if (arrivals_ > 1) gpu_->write_word(signals_->address(parcel.flag), target - 1, stream_);
    for (const RowCopy& rows : parcel.copies) gpu_->copy_rows(rows, stream_);
    pause();
    gpu_->write_word(signals_->address(parcel.flag), target, stream_);
  }
}

}  // namespace harpe::bench
