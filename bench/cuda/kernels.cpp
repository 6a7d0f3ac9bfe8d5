#include "bench/cuda/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "bench/cuda/texts.h"

namespace harpe::bench {
namespace {

constexpr int kThreads = 256;

// A header without its includes of other headers: all texts are concatenated.
std::string without_includes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("#pragma once") || line.starts_with("#include \"bench/")) continue;
    out += line;
  }
  return out;
}

// harpe_kernel(ARGS) calls FUNCTION of `header`.
cuda::KernelVariant kernel(const std::string& function, std::string_view header,
                           const std::string& args) {
  cuda::KernelVariant variant;
  variant.name = "harness_" + function;
  variant.family = "harness";
  variant.source = without_includes(device_text::args) + without_includes(device_text::elements) +
                   without_includes(header) +
                   fmt::format(
                       "extern \"C\" __global__ void __launch_bounds__({}) "
                       "harpe_kernel(const __grid_constant__ harpe::bench::{} args) "
                       "{{ harpe::bench::{}(args); }}\n",
                       kThreads, args, function);
  variant.threads = kThreads;
  variant.uses_wgmma = false;
  return variant;
}

cuda::KernelVariant fill_kernel() { return kernel("fill", device_text::fill, "FillArgs"); }

cuda::KernelVariant spin_kernel() { return kernel("spin", device_text::fill, "SpinArgs"); }

cuda::KernelVariant gemm_reference_kernel() {
  return kernel("gemm_reference", device_text::gemm_reference, "GemmReferenceArgs");
}

cuda::KernelVariant attention_reference_kernel() {
  return kernel("attention_reference", device_text::attention_reference, "AttentionReferenceArgs");
}

cuda::KernelVariant compare_kernel() {
  return kernel("compare", device_text::compare, "CompareArgs");
}

cuda::KernelVariant guard_kernel() { return kernel("guard", device_text::compare, "GuardArgs"); }

// Enough thread blocks for `work` items, but at most a full GPU.
Grid blocks_for(const Gpu& gpu, std::int64_t work) {
  const std::int64_t wanted = (work + kThreads - 1) / kThreads;
  const std::int64_t most = std::int64_t{8} * gpu.processors();
  return {.x = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most))};
}

unsigned tiles(std::int64_t size, std::int64_t tile) {
  return static_cast<unsigned>((size + tile - 1) / tile);
}

}  // namespace

std::vector<cuda::KernelVariant> harness_kernels() {
  return {fill_kernel(),    spin_kernel(), gemm_reference_kernel(), attention_reference_kernel(),
          compare_kernel(), guard_kernel()};
}

void fill_random(const Gpu& gpu, const FillArgs& args, CUstream stream) {
  gpu.launch(fill_kernel(), blocks_for(gpu, args.to.rows * args.to.columns), args, stream);
}

void spin(const Gpu& gpu, std::uint64_t nanoseconds, CUstream stream) {
  gpu.launch(spin_kernel(), Grid{}, SpinArgs{.nanoseconds = nanoseconds}, stream);
}

void gemm_reference(const Gpu& gpu, const GemmReferenceArgs& args, CUstream stream) {
  constexpr std::int64_t kTile = 64;
  gpu.launch(gemm_reference_kernel(),
             Grid{.x = tiles(args.n, kTile), .y = tiles(args.sample.count, kTile)}, args, stream);
}

void attention_reference(const Gpu& gpu, const AttentionReferenceArgs& args, CUstream stream) {
  gpu.launch(attention_reference_kernel(),
             Grid{.x = static_cast<unsigned>(args.sample.count),
                  .y = static_cast<unsigned>(args.heads),
                  .z = static_cast<unsigned>(args.batch)},
             args, stream);
}

void compare(const Gpu& gpu, const CompareArgs& args, CUstream stream) {
  gpu.launch(compare_kernel(), blocks_for(gpu, args.sample.count * args.out.columns), args, stream);
}

void check_guard(const Gpu& gpu, const GuardArgs& args, CUstream stream) {
  gpu.launch(guard_kernel(), blocks_for(gpu, args.bytes), args, stream);
}

VerdictBox::VerdictBox(const Gpu& gpu)
    : gpu_(&gpu), memory_(gpu.memory(sizeof(Verdict))), copy_(gpu.host_memory(sizeof(Verdict))) {}

void VerdictBox::clear(CUstream stream) {
  gpu_->fill_bytes(memory_.address(), 0, sizeof(Verdict), stream);
  gpu_->fill_bytes(memory_.address() + offsetof(Verdict, first), 0xff, sizeof(std::uint64_t),
                   stream);
}

Verdict* VerdictBox::device() const { return at<Verdict>(memory_.address()); }

Verdict VerdictBox::read(CUstream stream) const {
  gpu_->copy(copy_.address(), memory_.address(), sizeof(Verdict), stream);
  gpu_->synchronise(stream);
  Verdict verdict;
  std::memcpy(&verdict, copy_.host().data(), sizeof(verdict));
  return verdict;
}

double worst_ratio(const Verdict& verdict) { return std::bit_cast<double>(verdict.worst); }

std::string describe(const Verdict& verdict, std::int64_t columns) {
  std::string text;
  if (verdict.wrong > 0) {
    const auto width = static_cast<std::uint64_t>(columns);
    text = fmt::format("{} elements beyond their bound, the first at [{}, {}], worst {:.3g} bounds",
                       verdict.wrong, verdict.first / width, verdict.first % width,
                       worst_ratio(verdict));
  }
  if (verdict.altered > 0) {
    text += fmt::format("{}{} bytes written outside the output", text.empty() ? "" : "; ",
                        verdict.altered);
  }
  if (verdict.compared == 0) text += "nothing was compared";
  return text;
}

}  // namespace harpe::bench
