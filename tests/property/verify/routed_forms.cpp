#include "tests/property/verify/routed_forms.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "ir/text.h"

namespace harpe::test {
namespace {

using Random = std::mt19937_64;

// The example of the design; one that keeps every choice's row; one that reads the tokens by an
// axis of another name.
constexpr std::array<std::string_view, 3> kPrograms = {R"(
program layer {
  axis T = dyn 64
  axis Kc = 2
  axis E = 8
  axis C = dyn 64 of E
  axis H = 8
  axis F = 8
  buffer X : bf16[T, H] in
  buffer Idx : i32[T, Kc] in
  buffer Wt : f32[T, Kc] in
  buffer W1 : bf16[E, H, F] in
  buffer Y : bf16[T, H] out
  route R : (E, C) <- (T, Kc) by Idx
  buffer Xe : bf16[E, C, H] temp
  buffer Ye : bf16[E, C, F] temp
  leaf expert
  leaf scale_rows
  nest dispatch over (E, C) whole (H) {
    Xe = copy(X[T=R.T])
  }
  nest ffn over (E, C, F, H) {
    Ye sum= expert(Xe, W1)
  }
  nest combine over (T, Kc) whole (H, F) {
    Y sum= scale_rows(Ye[E=R.E, C=R.C], Wt)
  }
}
)",
                                                       R"(
program rows {
  axis T = dyn 64
  axis Kc = 2
  axis E = 8
  axis C = dyn 64 of E
  axis H = 8
  buffer X : bf16[T, H] in
  buffer Idx : i32[T, Kc] in
  buffer Y : bf16[T, Kc, H] out
  route R : (E, C) <- (T, Kc) by Idx
  buffer Xe : bf16[E, C, H] temp
  nest dispatch over (E, C) whole (H) {
    Xe = copy(X[T=R.T])
  }
  nest combine over (T, Kc) whole (H) {
    Y = copy(Xe[E=R.E, C=R.C])
  }
}
)",
                                                       R"(
program other {
  axis T = dyn 64
  axis S = dyn 64
  axis Kc = 2
  axis E = 8
  axis C = dyn 64 of E
  axis H = 8
  buffer X : bf16[S, H] in
  buffer Idx : i32[T, Kc] in
  buffer Z : f32[E, H] out
  buffer Y : bf16[T, H] out
  route R : (E, C) <- (T, Kc) by Idx
  buffer Xe : bf16[E, C, H] temp
  leaf expert
  leaf scale_rows
  nest dispatch over (E, C) whole (H) {
    Xe = copy(X[S=R.T])
  }
  nest total over (E, C) whole (H) {
    Z sum= expert(X[S=R.T], Xe)
  }
  nest combine over (T, Kc) whole (H) {
    Y sum= scale_rows(Xe[E=R.E, C=R.C])
  }
}
)"};

// Its index is an input, so that tests can draw any choices.
constexpr std::array<std::string_view, 1> kExperts = {R"(
program experts {
  axis T = 64
  axis Kc = 2
  axis E = 8
  axis C = dyn 64 of E
  axis H = 8
  axis F = 8
  buffer x : f32[T, H] in
  buffer index : i32[T, Kc] in
  buffer weight : f32[T, Kc] in
  buffer w : f32[E, H, F] in
  buffer y : f32[T, F] out
  route R : (E, C) <- (T, Kc) by index load zipf(1)
  buffer rows : f32[E, C, H] temp
  buffer made : f32[E, C, F] temp
  buffer act : f32[E, C, F] temp
  nest dispatch over (E, C) whole (H, Kc) {
    rows = gather_rows(x[T=R.T], index[T=R.T])
  }
  nest expand over (E, C, F, H) {
    made sum= matmul(rows, w)
  }
  nest activate over (E, C, F) {
    act = relu(made)
  }
  nest combine over (T, Kc) whole (F) {
    y sum= combine_rows(act[E=R.E, C=R.C], index, weight)
  }
}
)"};

template <class T>
T must(Checked<T> result) {
  HP_CHECK(result.ok(), render(result.error()));
  return std::move(result).value();
}

struct Unit {  // mesh axes that together divide a digit
  MeshRef axes;
  std::int64_t extent = 1;
};

class Producer {
 public:
  Producer(Random& random, std::span<const std::string_view> programs)
      : random_(random), programs_(programs) {}

  Example draw() {
    Cursor cursor = must(Cursor::open(programs_[below(programs_.size())]));
    program_ = must(parse_program(cursor));
    draw_mesh();
    draw_digits();
    draw_places();
    for (const Nest& nest : program_.nests) draw_nest(nest);
    draw_sizes();
    return {.program = program_, .mesh = mesh_, .form = form_};
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  template <class T>
  const T& any(const std::vector<T>& items) {
    return items[below(items.size())];
  }

  void draw_mesh() {
    const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {2, 3}};
    const std::vector<std::int64_t>& sizes = any(meshes);
    mesh_.name = "m";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      mesh_.axes.push_back({.name = i == 0 ? "x" : "y", .size = sizes[i]});
    }
    const bool joined = sizes.size() > 1 && chance(0.2);
    for (const MeshAxis& axis : mesh_.axes) {
      if (!joined || units_.empty()) units_.emplace_back();
      units_.back().axes.push_back(axis.name);
      units_.back().extent *= axis.size;
    }
    form_.name = "f";
    form_.program = program_.name;
    form_.mesh = mesh_.name;
  }

  std::string add_digit(const std::string& axis, std::int64_t extent) {
    const std::string name = "d" + std::to_string(axis_of_.size());
    axis_of_[name] = axis;
    extent_of_[name] = extent;
    splits_[axis].push_back({.name = name, .extent = extent});
    return name;
  }

  void draw_digits() {
    Layout slab{.axis = "C", .map = {.function = "slab", .args = {}}};
    for (const Unit& unit : units_) {
      for (const Axis* const axis : axes_of(program_)) {
        const bool central = axis->name == "T" || axis->name == "E" || axis->name == "S";
        if (axis->name == "C" || !chance(central ? 0.9 : 0.15)) continue;
        const std::string digit = add_digit(axis->name, unit.extent);
        if (axis->name != "T" || !chance(0.9)) continue;
        const std::string slot = add_digit("C", unit.extent);
        if (!chance(0.9)) continue;
        slab.map.args.insert(slab.map.args.end(), {Name{slot}, Name{digit}});
        tied_[slot] = digit;
        tied_[digit] = slot;
      }
    }
    for (const std::string axis : {"T", "E", "C"}) {
      if (chance(0.35)) add_digit(axis, static_cast<std::int64_t>(2 + below(2)));
    }
    if (splits_.contains("T") && find_axis(program_, "S") != nullptr && chance(0.6)) {
      like(splits_["T"]);
    }
    for (auto& [axis, digits] : splits_) {
      if (axis != "S" && axis != "T") std::ranges::shuffle(digits, random_);
      std::vector<Digit> all = digits;
      all.push_back({.name = "r" + axis, .extent = std::nullopt});
      form_.splits.push_back({.axis = axis, .digits = std::move(all)});
    }
    if (!slab.map.args.empty()) form_.layouts.push_back(std::move(slab));
  }

  // Splits the second token axis exactly like the first.
  void like(const std::vector<Digit>& tokens) {
    splits_["S"].clear();
    for (const Digit& digit : tokens) add_digit("S", *digit.extent);
  }

  [[nodiscard]] std::vector<std::string> digits_of(const std::vector<std::string>& axes) const {
    std::vector<std::string> names;
    for (const std::string& axis : axes) {
      const auto found = splits_.find(axis);
      if (found == splits_.end()) continue;
      for (const Digit& digit : found->second) names.push_back(digit.name);
    }
    return names;
  }

  void draw_places() {
    std::map<std::string, std::vector<Placement>> usual;  // by the first axis
    for (const Buffer* const buffer : buffers_of(program_)) {
      const std::vector<std::string> axes = axis_names(*buffer);
      Place place{.buffer = buffer->name, .at = {}, .partial = {}};
      const auto known = usual.find(axes.front());
      if (known != usual.end() && chance(0.85)) {
        place.at = known->second;
      } else {
        std::vector<std::string> free = digits_of(axes);
        std::ranges::shuffle(free, random_);
        for (const Unit& unit : units_) {
          const auto fits = std::ranges::find_if(free, [&](const std::string& digit) {
            return extent_of_.at(digit) == unit.extent &&
                   (axis_of_.at(digit) == axes.front() || chance(0.1));
          });
          if (fits == free.end() || !chance(0.85)) continue;
          place.at.push_back({.digit = *fits, .axes = unit.axes});
          free.erase(fits);
        }
        usual.try_emplace(axes.front(), place.at);
      }
      std::erase_if(place.at, [&](const Placement& at) {
        return std::ranges::count(axes, axis_of_.at(at.digit)) == 0;
      });
      form_.places.push_back(std::move(place));
    }
  }

  // The digit that divides the home of `buffer` over the unit, or "".
  [[nodiscard]] std::string home(const std::string& buffer, const Unit& unit) const {
    for (const Place& place : form_.places) {
      for (const Placement& at : place.at) {
        if (place.buffer == buffer && at.axes == unit.axes) return at.digit;
      }
    }
    return "";
  }

  [[nodiscard]] std::string followed(const Access& access, const std::string& digit) const {
    const bool routed = std::ranges::any_of(access.renames, [&](const Rename& rename) {
      return rename.axis == axis_of_.at(digit) && rename.axis != "E";
    });
    if (!routed) return digit;
    const auto found = tied_.find(digit);
    return found == tied_.end() ? "" : found->second;
  }

  void draw_nest(const Nest& nest) {
    NestForm out;
    out.nest = nest.name;
    std::vector<std::string> axes = nest.over;
    std::ranges::replace(axes, "Kc", "E");
    std::vector<std::string> free = digits_of(axes);
    std::ranges::shuffle(free, random_);
    par_.clear();
    for (const Unit& unit : units_) {
      std::vector<std::string> fits;
      for (const std::string& digit : free) {
        if (extent_of_.at(digit) == unit.extent) fits.push_back(digit);
        // Prefers the home of the nest's result.
        if (!fits.empty() && digit == home(nest.stmts[0].targets[0].buffer, unit) && chance(0.7)) {
          fits = {digit};
          break;
        }
      }
      if (fits.empty() || chance(0.1)) continue;
      par_[any(fits)] = unit.axes;
      std::erase_if(free, [&](const std::string& digit) { return par_.contains(digit); });
    }
    for (const auto& [digit, unit] : par_) {
      out.items.emplace_back(Par{.digit = digit, .axes = unit});
    }
    std::vector<For> loops;
    for (const std::string& digit : free) {
      if (chance(0.35)) loops.push_back(draw_loop(digit));
    }
    std::vector<std::vector<NestItem>> slots(loops.size() + 1);
    for (const Stmt& stmt : nest.stmts) draw_moves(stmt, axes, loops, slots);
    if (chance(0.03)) repeat_move(slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i > 0) out.items.emplace_back(loops[i - 1]);
      out.items.insert(out.items.end(), slots[i].begin(), slots[i].end());
    }
    form_.nests.push_back(std::move(out));
  }

  // Repeats a move at another place.
  void repeat_move(std::vector<std::vector<NestItem>>& slots) {
    std::vector<NestItem> moves;
    for (const auto& slot : slots) moves.insert(moves.end(), slot.begin(), slot.end());
    if (!moves.empty()) slots[below(slots.size())].push_back(any(moves));
  }

  For draw_loop(const std::string& digit) {
    For loop;
    loop.digit = digit;
    const Unit& unit = any(units_);
    if (unit.extent == extent_of_.at(digit) && chance(0.7)) loop.skew = unit.axes;
    if (!loop.skew.empty() && chance(0.3)) loop.offset = 1;
    loop.reverse = chance(0.08);
    return loop;
  }

  void draw_moves(const Stmt& stmt, const std::vector<std::string>& axes,
                  const std::vector<For>& loops, std::vector<std::vector<NestItem>>& slots) {
    std::vector<Unit> order = units_;
    std::ranges::shuffle(order, random_);
    for (const Access& operand : stmt.operands) {
      std::size_t least = 0;
      for (const Unit& unit : order) {
        const std::string digit = home(operand.buffer, unit);
        const std::string at = digit.empty() ? "" : followed(operand, digit);
        const auto par = par_.find(at);
        const bool there = digit.empty() || (par != par_.end() && par->second == unit.axes);
        if (!chance(there ? 0.05 : 0.96)) continue;
        const std::size_t position = draw_position(at, least, loops);
        least = position;
        slots[position].emplace_back(
            draw_move(MoveKind::Stage, operand, unit, axes, loops, position));
      }
    }
    for (const Access& target : stmt.targets) {
      for (const Unit& unit : order) {
        const std::string digit = home(target.buffer, unit);
        const auto par = std::ranges::find_if(
            par_, [&](const auto& entry) { return entry.second == unit.axes; });
        const bool there = par == par_.end() ? digit.empty() : par->first == digit;
        if (!chance(there ? 0.03 : 0.96)) continue;
        const std::size_t position = draw_position(digit, 0, loops);
        slots[position].emplace_back(
            draw_move(MoveKind::Drain, target, unit, axes, loops, position));
      }
    }
  }

  std::size_t draw_position(const std::string& digit, std::size_t least,
                            const std::vector<For>& loops) {
    const auto found = std::ranges::find(loops, digit, &For::digit);
    const auto after = static_cast<std::size_t>(found - loops.begin()) + 1;
    if (found != loops.end() && after >= least && chance(0.6)) return after;
    return least + below(loops.size() + 1 - least);
  }

  Move draw_move(MoveKind kind, const Access& access, const Unit& unit,
                 const std::vector<std::string>& axes, const std::vector<For>& loops,
                 std::size_t position) {
    Move move;
    move.kind = kind;
    move.buffer = access.buffer;
    move.over = unit.axes;
    std::vector<How> hows = {How::Bulk, How::Direct, How::Direct};
    if (position > 0 && loops[position - 1].skew == unit.axes) hows.push_back(How::Relay);
    if (kind == MoveKind::Stage && chance(0.1)) hows = {How::Inline};
    move.how = any(hows);
    move.by = chance(0.5) ? Initiator::Src : Initiator::Dst;
    move.depth = static_cast<std::int64_t>(1 + below(3));
    if (move.how == How::Relay) move.depth = std::max<std::int64_t>(2, *move.depth);
    move.via = any(std::vector<Via>{Via::Ce, Via::Ce, Via::Sm, Via::Nccl, Via::Proxy});
    if (move.via == Via::Proxy) {
      move.by = Initiator::Src;
      move.fence = any(std::vector<Fence>{Fence::PerPut, Fence::PerDestination, Fence::NicOrdered,
                                          Fence::Batched, Fence::OneQuiet, Fence::Immediate});
    }
    if (move.how == How::Inline) move.via = Via::Sm;
    if (kind == MoveKind::Drain || !chance(0.35)) return move;
    std::vector<std::string> chunks = digits_of(axis_names(*find_buffer(program_, access.buffer)));
    if (!access.renames.empty()) {
      const std::vector<std::string> iterated = digits_of(axes);
      chunks.insert(chunks.end(), iterated.begin(), iterated.end());
    }
    if (!chunks.empty()) move.chunk = any(chunks);
    return move;
  }

  // Sizes around and below the number of blocks.
  void draw_sizes() {
    for (Decl& decl : program_.decls) {
      auto* const axis = std::get_if<Axis>(&decl);
      if (axis == nullptr) continue;
      axis->size = Poly{static_cast<std::int64_t>(1 + below(chance(0.6) ? 24 : 300)), {}};
      axis->align = std::int64_t{1} << below(4);
    }
    const Axis* const tokens = find_axis(program_, "T");
    for (Decl& decl : program_.decls) {
      auto* const axis = std::get_if<Axis>(&decl);
      if (axis == nullptr || axis->name != "S" || chance(0.2)) continue;
      axis->size = tokens->size;
      axis->align = tokens->align;
    }
    if (program_.name == "experts") draw_choices(*tokens);
  }

  // An exact route has a slot for every token, and no token chooses an expert twice.
  void draw_choices(const Axis& tokens) {
    const std::int64_t experts = size_of(*find_axis(program_, "E"));
    for (Decl& decl : program_.decls) {
      auto* const axis = std::get_if<Axis>(&decl);
      if (axis == nullptr) continue;
      if (axis->name == "Kc") {
        const auto most = static_cast<std::size_t>(std::min<std::int64_t>(experts, 3));
        axis->size = Poly{static_cast<std::int64_t>(1 + below(most)), {}};
      }
      if (axis->name != "C") continue;
      axis->size = tokens.size;
      axis->align = tokens.align;
    }
  }

  Random& random_;
  std::span<const std::string_view> programs_;
  Program program_;
  Mesh mesh_;
  NormalForm form_;
  std::vector<Unit> units_;
  std::map<std::string, std::vector<Digit>> splits_;  // per axis, without the remainder
  std::map<std::string, std::string> axis_of_;
  std::map<std::string, std::int64_t> extent_of_;
  std::map<std::string, std::string> tied_;  // slot digit <-> token digit
  std::map<std::string, MeshRef> par_;       // of the current nest
};

}  // namespace

Example draw_routed_form(Random& random) { return Producer(random, kPrograms).draw(); }
Example draw_expert_form(Random& random) { return Producer(random, kExperts).draw(); }

}  // namespace harpe::test
