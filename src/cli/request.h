#pragma once

#include <cstdint>

#include "cli/command_line.h"
#include "compile/session.h"
#include "run/backend.h"
#include "support/diag.h"

namespace harpe::cli {

// The most that flags of several verbs may ask for.
constexpr std::int64_t kLongestWait = 3'600'000;  // milliseconds
constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::int64_t kMostSeconds = 1'000'000;

// The operands and flags that say what to work on. Errors: U110 without a target, U109.
[[nodiscard]] Checked<Request> request_of(const CommandLine& line);

// The same for verbs that take no plan file. Errors: U114, U110.
[[nodiscard]] Checked<Request> operator_request_of(const CommandLine& line);

// `--backend`, by default CPU ranks. Errors: U109.
[[nodiscard]] Checked<Backend> backend_of(const CommandLine& line);
// `--target`: whose launches are meant, CPU ranks' or, as Backend::Cuda, those of H200s. Errors:
// U109.
[[nodiscard]] Checked<Backend> target_of(const CommandLine& line, Backend otherwise);
// Where the CUDA back end finds its libraries: `--nvrtc`, `--libraries` and the environment.
[[nodiscard]] CudaPlaces library_places_of(const CommandLine& line);
// The same, and where it keeps compiled kernels: `--cache`. Errors: cache_of's.
[[nodiscard]] Checked<CudaPlaces> cuda_places_of(const CommandLine& line);
// `--backend` with the flags that say how GPUs are used. Errors: U109, and cache_of's.
[[nodiscard]] Checked<BackendRequest> backend_request_of(const CommandLine& line);

}  // namespace harpe::cli
