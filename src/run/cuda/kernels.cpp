#include "run/kernels.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "exec/cuda/jit/kernel_cache.h"
#include "exec/cuda/kernels/shipped_variants.h"
#include "run/cuda/cuda_gpus.h"
#include "support/threads.h"

namespace harpe {
namespace {

using cuda::KernelVariant;

// Adds the shipped kernels of that name or family; at least one must exist.
Checked<Ok> add_named(const std::string& name, const std::vector<KernelVariant>& shipped,
                      std::vector<KernelRow>& rows) {
  const std::size_t before = rows.size();
  std::vector<std::string> known;
  for (const KernelVariant& variant : shipped) {
    known.insert(known.end(), {variant.name, variant.family});
    if (variant.name == name || variant.family == name) rows.push_back({.variant = variant});
  }
  if (rows.size() > before) return Ok{};
  return make_diag(DiagCode::G020, {{"name", name}, {"hint", suggestion(name, known)}});
}

Checked<std::vector<KernelRow>> rows_of(const std::vector<std::string>& names) {
  const std::vector<KernelVariant> shipped = cuda::shipped_variants();
  std::vector<KernelRow> rows;
  for (const std::string& name : names) HP_REQUIRE_OK(add_named(name, shipped, rows));
  if (names.empty()) {
    for (const KernelVariant& variant : shipped) rows.push_back({.variant = variant});
  }
  return rows;
}

Checked<Ok> compile_row(const cuda::Nvrtc& compiler, const std::optional<std::string>& cache,
                        KernelRow& row) {
  HP_TRY(cuda::CachedKernel made,
         cuda::compile_variant(compiler, cache, row.variant, cuda::device_headers()));
  row.cache = cuda::print(made.use);
  row.problems = std::move(made.problems);
  HP_TRY(row.report, cuda::inspect(row.variant, made.kernel));
  row.findings = cuda::check(row.variant, *row.report);
  return Ok{};
}

// Each worker takes the next row in turn; an exception of a worker is rethrown here.
void compile_rows(const cuda::Nvrtc& compiler, const std::optional<std::string>& cache,
                  std::vector<KernelRow>& rows) {
  std::atomic<std::size_t> next = 0;
  const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
  run_in_threads(std::min(workers, rows.size()), [&](std::size_t) {
    for (std::size_t at = next++; at < rows.size(); at = next++) {
      const Checked<Ok> compiled = compile_row(compiler, cache, rows[at]);
      if (!compiled.ok()) rows[at].findings = {compiled.error()};
    }
  });
}

}  // namespace

Checked<KernelListing> CudaGpus::list_kernels(const KernelRequest& request) const {
  KernelListing listing;
  HP_TRY(listing.rows, rows_of(request.names));
  if (!request.compile) return listing;
  HP_TRY(const cuda::Nvrtc compiler,
         cuda::Nvrtc::open(request.places.nvrtc, request.places.cuda_folders));
  listing.compiler = "NVRTC " + compiler.version() + " (" + compiler.path() + ")";
  compile_rows(compiler, request.places.kernel_cache, listing.rows);
  return listing;
}

}  // namespace harpe
