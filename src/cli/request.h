#pragma once

#include <cstdint>

#include "cli/command_line.h"
#include "compile/session.h"
#include "run/backend.h"
#include "support/diag.h"

namespace harpe::cli {

// Upper limits of flags that several verbs have.
constexpr std::int64_t kLongestWait = 3'600'000;  // milliseconds
constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::int64_t kMostSeconds = 1'000'000;

// The operands and flags that state the subject. Errors: U110 without a target, U109.
[[nodiscard]] Checked<Request> request_of(const CommandLine& line);

// The same for verbs that do not accept plan files. Errors: U114, U110.
[[nodiscard]] Checked<Request> operator_request_of(const CommandLine& line);

// `--backend`, by default CPU ranks. Errors: U109.
[[nodiscard]] Checked<Backend> backend_of(const CommandLine& line);
// `--target`: the launches of CPU ranks or, as Backend::Cuda, those of H200s. Errors: U109.
[[nodiscard]] Checked<Backend> target_of(const CommandLine& line, Backend otherwise);
// Where the CUDA back end looks for libraries: `--nvrtc`, `--libraries` and the environment.
[[nodiscard]] CudaPlaces library_places_of(const CommandLine& line);
// The same, with the folder of compiled kernels: `--cache`. Errors: cache_of's.
[[nodiscard]] Checked<CudaPlaces> cuda_places_of(const CommandLine& line);
// `--backend` with the flags for the use of GPUs. Errors: U109, and cache_of's.
[[nodiscard]] Checked<BackendRequest> backend_request_of(const CommandLine& line);

}  // namespace harpe::cli
