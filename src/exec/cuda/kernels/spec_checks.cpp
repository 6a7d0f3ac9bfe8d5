#include "exec/cuda/kernels/spec_checks.h"

namespace harpe::cuda {

Checked<Ok> check_count(std::string_view what, std::int64_t count, std::int64_t least,
                        std::int64_t most) {
  if (count >= least && count <= most) return Ok{};
  return make_diag(DiagCode::G062,
                   {{"what", what}, {"count", count}, {"least", least}, {"most", most}});
}

}  // namespace harpe::cuda
