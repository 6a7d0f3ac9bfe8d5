#pragma once

namespace harpe::cuda {

// Multiprocessors that a kernel which fills the others leaves to kernels of a warp, such as raise
// signals: these did not run beside blocks that fill a multiprocessor (measured, an H200).
constexpr int kForSignals = 2;

}  // namespace harpe::cuda
