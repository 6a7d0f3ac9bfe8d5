#include <algorithm>

#include "ir/text.h"
#include "lower/axis_sets.h"
#include "lower/walk.h"
#include "offers/offers.h"

// Checks a statement's targets, homes and drains before the walk.
namespace harpe {

Checked<Ok> Drainer::check() const {
  HP_REQUIRE_OK(check_inline());
  for (std::size_t target = 0; target < group_.targets.size(); ++target) {
    const BufferTable& out = buffer(static_cast<int>(target));
    HP_REQUIRE_OK(check_coverage(out));
    HP_REQUIRE_OK(check_partial(out));
    HP_REQUIRE_OK(check_replicas(out));
    HP_REQUIRE_OK(check_one_shots(out));
  }
  return Ok{};
}

std::vector<int> Drainer::drained_axes() const {
  std::vector<int> axes;
  for (const NestMove* move : group_.chain) {
    axes.insert(axes.end(), move->over.begin(), move->over.end());
  }
  return axes;
}

// commir.md 4.3: contributions are combined along an axis if the home follows it or a drain runs
// over it, or stay separate in a partial home.
Checked<Ok> Drainer::check_coverage(const BufferTable& out) const {
  const Blocks& blocks = writer_.blocks();
  const std::vector<int> drained = drained_axes();
  std::vector<int> covered = drained;
  covered.insert(covered.end(), out.partial_axes.begin(), out.partial_axes.end());
  for (std::size_t digit = 0; digit < space_.par.size(); ++digit) {
    const std::vector<int>& axes = space_.par[digit];
    const auto at = std::ranges::find(out.digits, static_cast<int>(digit));
    if (axes.empty() || is_subset(axes, at == out.digits.end() ? covered : drained)) continue;
    const bool follows = at != out.digits.end() &&
                         out.home[static_cast<std::size_t>(at - out.digits.begin())] == axes;
    if (!follows) {
      return make_diag(DiagCode::F207, {{"buffer", out.name},
                                        {"digit", blocks.digits()[digit].name},
                                        {"axes", print_mesh_ref(names_of(blocks, axes))}});
    }
  }
  for (std::size_t i = 0; i < out.digits.size(); ++i) {
    const std::vector<int>& axes = out.home[i];
    const auto digit = static_cast<std::size_t>(out.digits[i]);
    if (axes.empty() || space_.par[digit] == axes || is_subset(axes, drained)) continue;
    return make_diag(DiagCode::F208, {{"buffer", out.name},
                                      {"digit", blocks.digits()[digit].name},
                                      {"axes", print_mesh_ref(names_of(blocks, axes))}});
  }
  return Ok{};
}

// Along each axis of a partial home, the ranks hold disjoint parts: a parallel digit that the
// buffer lacks divides the sum there, and no drain combines the parts earlier.
Checked<Ok> Drainer::check_partial(const BufferTable& out) const {
  const Blocks& blocks = writer_.blocks();
  for (const int axis : out.partial_axes) {
    const std::vector<int> one{axis};
    const auto refuse = [&](const std::string& reason) {
      return make_diag(DiagCode::F242, {{"buffer", out.name},
                                        {"axes", print_mesh_ref(names_of(blocks, one))},
                                        {"reason", reason}});
    };
    if (meets(drained_axes(), one)) return refuse("a drain over them combines the parts");
    bool divided = false;
    for (std::size_t digit = 0; digit < space_.par.size(); ++digit) {
      const bool lacks = std::ranges::find(out.digits, static_cast<int>(digit)) == out.digits.end();
      divided = divided || (lacks && meets(space_.par[digit], one));
    }
    if (divided || blocks.extent(one) == 1) continue;
    return refuse("no parallel digit of nest `" + space_.program_nest->name +
                  "` divides the sum along them");
  }
  return Ok{};
}

// commir.md 4.4: the leaf stores each block directly into its owner's memory, so no drain may
// follow and no contribution may be a replica that has to be skipped.
Checked<Ok> Drainer::check_inline() const {
  const NestMove* move = inline_drain();
  if (move == nullptr) return Ok{};
  const std::string axes = print_mesh_ref(move->spec->over);
  if (!is_offered(stmt_.stmt->leaf, &KernelOffer::remote_targets)) {
    return make_diag(DiagCode::F240, {{"leaf", stmt_.stmt->leaf}, {"buffer", move->spec->buffer}});
  }
  const auto refuse = [&](const std::string& reason) {
    return make_diag(DiagCode::F241,
                     {{"buffer", move->spec->buffer}, {"axes", axes}, {"reason", reason}});
  };
  if (move->spec->wire) return refuse("there is no transfer that `wire` could round");
  if (group_.chain.size() > 1) return refuse("another drain follows or precedes it");
  const Blocks& blocks = writer_.blocks();
  for (const int axis : move->over) {
    const std::vector<int> one{axis};
    const bool bound =
        std::ranges::any_of(space_.par, [&](const auto& par) { return meets(par, one); });
    if (bound || blocks.extent(one) == 1) continue;
    return refuse("ranks along `" + print_mesh_ref(names_of(blocks, one)) +
                  "` make replicas of it");
  }
  return Ok{};
}

// Ranks that differ only along an unbound mesh axis compute the same sums. Unless one of them sends
// its sum to the others, all must add in the same order.
Checked<Ok> Drainer::check_replicas(const BufferTable& out) const {
  if (writer_.space_time_only() || stmt_.stmt->monoid == Monoid::Store) return Ok{};
  const Blocks& blocks = writer_.blocks();
  for (const NestLoop& loop : space_.loops) {
    const bool adds = std::ranges::find(out.digits, loop.digit) == out.digits.end();
    if (!adds || loop.extent == 1) continue;
    for (const int axis : loop.skew_axes) {
      const std::vector<int> one{axis};
      const auto has_axis = [&](const std::vector<int>& axes) { return meets(axes, one); };
      const bool chosen =
          std::ranges::any_of(space_.par, has_axis) || std::ranges::any_of(out.home, has_axis) ||
          std::ranges::any_of(pins_, [&](const ScatterPin& pin) { return has_axis(pin.axes); });
      if (chosen || blocks.extent(one) == 1) continue;
      return make_diag(DiagCode::F223,
                       {{"nest", space_.program_nest->name},
                        {"buffer", out.name},
                        {"digit", blocks.digits()[static_cast<std::size_t>(loop.digit)].name},
                        {"axis", print_mesh_ref(names_of(blocks, one))}});
    }
  }
  return Ok{};
}

// Every rank along the axes ends with the whole result.
Checked<Ok> Drainer::check_one_shots(const BufferTable& out) const {
  for (const NestMove* const move : group_.chain) {
    const auto is_divided = [&](const std::vector<int>& axes) { return meets(axes, move->over); };
    if (move->spec->how != How::OneShot || std::ranges::none_of(out.home, is_divided)) continue;
    return make_diag(DiagCode::F227, {{"move", print(move->spec->kind)},
                                      {"buffer", out.name},
                                      {"axes", print_mesh_ref(move->spec->over)},
                                      {"reason", "its home is divided there"}});
  }
  return Ok{};
}

}  // namespace harpe
