#include "bench/cuda/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "bench/cuda/gpu.h"
#include "bench/cuda/kernels.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/shipped_variants.h"

namespace harpe::bench {

int compile_all(const Options& options) {
  const cuda::Nvrtc compiler = open_compiler(options);
  std::vector<cuda::KernelVariant> variants = cuda::shipped_variants();
  std::erase_if(variants, [&](const cuda::KernelVariant& variant) {
    return variant.name.find(options.filter) == std::string::npos;
  });
  for (cuda::KernelVariant& variant : harness_kernels()) variants.push_back(std::move(variant));
  std::erase_if(variants, [&](const cuda::KernelVariant& variant) {
    return variant.name.find(options.filter) == std::string::npos;
  });
  std::atomic<std::size_t> next = 0;
  std::atomic<int> failures = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < variants.size(); i = next++) {
      const auto made =
          cuda::compile_variant(compiler, options.cache, variants[i], cuda::device_headers());
      if (made.ok()) {
        fmt::print(stderr, "{} {} {:.2f} s\n", variants[i].name, cuda::print(made->use),
                   made->kernel.seconds);
      } else {
        fmt::print(stderr, "{}\n", render(made.error()));
        ++failures;
      }
    }
  };
  std::vector<std::jthread> workers(std::max(1U, std::thread::hardware_concurrency()));
  for (std::jthread& worker : workers) worker = std::jthread(work);
  workers.clear();
  return failures > 0 ? 1 : 0;
}

}  // namespace harpe::bench
