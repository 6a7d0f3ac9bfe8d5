#pragma once

#include <span>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/signals/device/post_args.h"
#include "exec/cuda/signals/device/signal_args.h"
#include "exec/cuda/signals/signal_page.h"

namespace harpe::cuda {

// Enqueues signals between other work of a stream, as kernels of one warp that fit beside any
// other. Copies are cheap; all live as long as the library. Requires, for every function: the GPU
// is current for the calling thread.
class SignalKernels {
 public:
  // Errors: those of `KernelLibrary::load`.
  [[nodiscard]] static Checked<SignalKernels> load(KernelLibrary& library);

  // What runs between executions, as one kernel: `waits` as in await; then the rank's next epoch,
  // if an execution begins here, or ends that a kernel began; then `targets` as in raise. If the
  // rank is poisoned, its fault record notes that. Requires: a context with a record.
  struct Turn {
    std::span<const device::SignalWait> waits = {};
    bool counts_epoch = false;
    std::span<const device::RaiseTarget> targets = {};
    bool begins_early = false;  // as in raise
  };
  [[nodiscard]] Result<Ok, CudaError> turn(const Stream& stream, const SignalAddresses& own,
                                           const device::WaitContext& context, Turn turn) const;
  // Only the rank's next epoch.
  [[nodiscard]] Result<Ok, CudaError> begin_epoch(const Stream& stream, const SignalAddresses& own,
                                                  const device::WaitContext& context) const {
    return turn(stream, own, context, {.counts_epoch = true});
  }
  // Raises all targets once the stream's earlier work is done, and releases that work to threads
  // that acquire them; `own` is the raising rank's page. A poisoned rank poisons the waiting ranks
  // instead. `begins_early`: starts while the previous kernel ends; requires that the stream's last
  // work is a kernel.
  [[nodiscard]] Result<Ok, CudaError> raise(const Stream& stream, const SignalAddresses& own,
                                            std::span<const device::RaiseTarget> targets,
                                            bool begins_early = false) const;
  // Work enqueued next sees what was released before every one of the signals. After a fault of
  // this rank or a peer it runs without them. Requires: no flag is null.
  [[nodiscard]] Result<Ok, CudaError> await(const Stream& stream,
                                            const device::WaitContext& context,
                                            std::span<const device::SignalWait> waits) const;
  // Writes descriptors for the stream's earlier work, with the epoch of `context` as their value.
  [[nodiscard]] Result<Ok, CudaError> post(const Stream& stream, const device::WaitContext& context,
                                           std::span<const device::Post> posts) const;
  // Tests: pauses the stream, for a different time up to `most_ns` in every epoch.
  [[nodiscard]] Result<Ok, CudaError> linger(const Stream& stream, const SignalAddresses& own,
                                             std::uint32_t seed, std::uint32_t most_ns) const;
  // Tests: a kernel with a wrong address, after which the GPU rejects all work of this process.
  [[nodiscard]] Result<Ok, CudaError> stray(const Stream& stream) const;

 private:
  SignalKernels(const DriverApi& driver, const LoadedKernel* turn, const LoadedKernel* raise,
                const LoadedKernel* await, const LoadedKernel* post, const LoadedKernel* linger,
                const LoadedKernel* stray)
      : driver_(&driver),
        turn_(turn),
        raise_(raise),
        await_(await),
        post_(post),
        linger_(linger),
        stray_(stray) {}

  const DriverApi* driver_;
  const LoadedKernel* turn_;
  const LoadedKernel* raise_;
  const LoadedKernel* await_;
  const LoadedKernel* post_;
  const LoadedKernel* linger_;
  const LoadedKernel* stray_;
};

// Signal number `index` of a peer's page, as the target of a raise: a counter grows by `added`, a
// flag (0) is set to the epoch.
[[nodiscard]] device::RaiseTarget target_of(const SignalAddresses& peer, std::int32_t index,
                                            std::uint32_t added);
[[nodiscard]] inline device::RaiseTarget flag_of(const SignalAddresses& peer, std::int32_t index) {
  return target_of(peer, index, 0);
}
[[nodiscard]] inline device::RaiseTarget counter_of(const SignalAddresses& peer,
                                                    std::int32_t index) {
  return target_of(peer, index, 1);
}
// The wait for flag (`arrivals` 1) or counter number `index` of the rank's own page; a fault names
// it by its index.
[[nodiscard]] device::SignalWait wait_on(const SignalAddresses& own, std::int32_t index,
                                         std::uint32_t arrivals = 1, std::uint32_t epochs_back = 0);

}  // namespace harpe::cuda
