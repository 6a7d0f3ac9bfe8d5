#include "lower/fuse.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace harpe {
namespace {

class Fuser {
 public:
  explicit Fuser(Draft& draft) : draft_(draft) {}

  Checked<Ok> run() {
    for (const Fuse& fuse : draft_.form.fuses) {
      HP_TRY(const std::vector<std::size_t> nests, nests_of(fuse));
      if (fuse.persistent) merge_launches(nests);
    }
    return Ok{};
  }

 private:
  [[nodiscard]] static Diag refuse(const Fuse& fuse, const std::string& reason) {
    return make_diag(DiagCode::F244, {{"fuse", fuse.name}, {"reason", reason}});
  }

  // The indices of its nests in the program, with earlier fusions expanded.
  Checked<std::vector<std::size_t>> nests_of(const Fuse& fuse) {
    std::vector<std::size_t> nests;
    for (const std::string& member : fuse.nests) {
      if (!fused_.insert(member).second) return refuse(fuse, "`" + member + "` is fused twice");
      const std::vector<std::size_t> inner = expand(fuse, member);
      if (inner.empty()) {
        return refuse(fuse, "`" + member + "` is no nest and no fusion above it");
      }
      nests.insert(nests.end(), inner.begin(), inner.end());
    }
    for (std::size_t i = 1; i < nests.size(); ++i) {
      if (nests[i] == nests[i - 1] + 1) continue;
      return refuse(fuse, "`" + name(nests[i]) + "` does not follow `" + name(nests[i - 1]) + "`");
    }
    return nests;
  }

  [[nodiscard]] std::vector<std::size_t> expand(const Fuse& fuse, const std::string& member) const {
    const auto nest = std::ranges::find(draft_.program.nests, member, &Nest::name);
    if (nest != draft_.program.nests.end()) {
      return {static_cast<std::size_t>(nest - draft_.program.nests.begin())};
    }
    std::vector<std::size_t> nests;
    for (const Fuse& earlier : draft_.form.fuses) {
      if (earlier.name == fuse.name) break;
      if (earlier.name != member) continue;
      for (const std::string& inner : earlier.nests) {
        const std::vector<std::size_t> found = expand(earlier, inner);
        nests.insert(nests.end(), found.begin(), found.end());
      }
    }
    return nests;
  }

  [[nodiscard]] const std::string& name(std::size_t nest) const {
    return draft_.program.nests[nest].name;
  }

  void merge_launches(const std::vector<std::size_t>& nests) {
    std::vector<std::int32_t> launch(static_cast<std::size_t>(draft_.blocks.ranks()), -1);
    for (DraftTask& task : draft_.tasks) {
      if (task.kind != TaskKind::Compute) continue;
      if (std::ranges::find(nests, static_cast<std::size_t>(task.nest)) == nests.end()) continue;
      std::int32_t& of_rank = launch[task.rank.index()];
      if (of_rank < 0) of_rank = task.kernel;
      task.kernel = of_rank;
    }
  }

  Draft& draft_;
  std::set<std::string> fused_;
};

}  // namespace

Checked<Ok> fuse_kernels(Draft& draft) { return Fuser(draft).run(); }

}  // namespace harpe
