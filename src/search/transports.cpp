#include "search/transports.h"

#include <set>

#include "machine/rates.h"
#include "schedule/transports.h"

namespace harpe {
namespace {

// The levels at which ranks that differ along `over` meet.
std::set<int> levels_of(const Mesh& mesh, const Machine& machine, const MeshRef& over) {
  std::set<int> levels;
  const std::int64_t ranks = mesh.ranks();
  for (std::size_t i = 0; i < over.size(); ++i) {
    std::int64_t stride = ranks;
    std::int64_t size = 1;
    for (const MeshAxis& axis : mesh.axes) {
      stride /= axis.size;
      if (axis.name == over[i]) {
        size = axis.size;
        break;
      }
    }
    for (std::int64_t other = 1; other < size; ++other) {
      levels.insert(level_between(machine, 0, other * stride));
    }
  }
  return levels;
}

bool has_all(const Machine& machine, Via via, const std::set<int>& levels) {
  for (const int level : levels) {
    if (find_transport(machine, print(via), level) == nullptr) return false;
  }
  return true;
}

void rebind(Move& move, Via via) {
  move.via = via;
  move.signal = std::nullopt;
  move.fence = std::nullopt;
  if (via != Via::Proxy) return;
  move.by = Initiator::Src;
  move.signal = Signal::Flag;
  move.fence = Fence::Dest;
}

}  // namespace

NormalForm fit_transports(const Mesh& mesh, const Machine& machine, NormalForm form) {
  const Mesh parts = refined(mesh, form);
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      auto* move = std::get_if<Move>(&item);
      if (move == nullptr || move->how == How::Inline) continue;
      const std::set<int> levels = levels_of(parts, machine, move->over);
      if (has_all(machine, move->transport(), levels)) continue;
      const bool posts = move->how != How::Bulk;
      for (const Via via : {Via::Proxy, Via::Nccl}) {
        if (!has_all(machine, via, levels) || (via == Via::Proxy && !posts)) continue;
        rebind(*move, via);
        break;
      }
    }
  }
  return form;
}

}  // namespace harpe
