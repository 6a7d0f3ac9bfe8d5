#include "exec/cuda/signals/signal_variants.h"

namespace harpe::cuda {
namespace {

// `call` is a function of the family's header under device/, `arguments` the type of its only
// parameter.
KernelVariant variant_of(const std::string& family, const std::string& name,
                         const std::string& call, const std::string& arguments) {
  KernelVariant variant;
  variant.name = family + "_" + name;
  variant.family = family;
  variant.tile = "1 warp";
  variant.source = "#include \"exec/cuda/signals/device/" + family +
                   ".cuh\"\n"
                   "using namespace harpe::device;\n"
                   "extern \"C\" __global__ void __launch_bounds__(32)\n"
                   "    harpe_kernel(const __grid_constant__ " +
                   arguments +
                   " args) {\n"
                   "  " +
                   call +
                   "(args);\n"
                   "}\n";
  variant.threads = 32;
  variant.shared_bytes = 0;
  variant.uses_wgmma = false;
  return variant;
}

}  // namespace

KernelVariant turn_variant() { return variant_of("signal", "turn", "turn", "TurnArgs"); }

KernelVariant raise_variant() { return variant_of("signal", "raise", "raise_behind", "RaiseArgs"); }

KernelVariant await_variant() {
  return variant_of("signal", "await", "await_signals", "AwaitArgs");
}

KernelVariant post_variant() { return variant_of("post", "all", "post_all", "PostArgs"); }

KernelVariant stamp_variant() { return variant_of("clock", "stamp", "stamp", "StampArgs"); }

KernelVariant answer_clock_variant() {
  return variant_of("clock", "answer", "answer_clock", "AnswerClockArgs");
}

KernelVariant linger_variant() { return variant_of("signal", "linger", "linger", "LingerArgs"); }

KernelVariant stray_variant() { return variant_of("signal", "stray", "stray", "StrayArgs"); }

std::vector<KernelVariant> signal_variants() {
  return {turn_variant(),   raise_variant(), await_variant(), post_variant(),
          linger_variant(), stray_variant(), stamp_variant(), answer_clock_variant()};
}

}  // namespace harpe::cuda
