#pragma once

namespace harpe::cuda {

// SMs that a kernel which fills the GPU leaves to kernels of one warp, such as raises of signals:
// these did not run beside blocks that fill an SM (measured, an H200).
constexpr int kForSignals = 2;

}  // namespace harpe::cuda
