#include "verify/reduced.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "ir/instantiate.h"
#include "ir/mask_contract.h"

namespace harpe {
namespace {

constexpr std::int64_t kSmallCut = 3;  // one odd and one even cut, so that parity hides no fault
constexpr std::int64_t kLargeCut = 4;

class Reducer {
 public:
  Reducer(const Program& program, const Mesh& mesh, const NormalForm& form, std::int64_t cut)
      : program_(program), mesh_(mesh), form_(form), cut_(cut) {}

  Checked<ReducedCase> run() {
    ReducedCase out{.program = program_, .mesh = mesh_, .form = form_};
    cut_mesh(out);
    HP_REQUIRE_OK(bind_digits());
    HP_REQUIRE_OK(bind_slots());
    cut_digits(out.form);
    HP_REQUIRE_OK(check_layouts());
    cut_axes(out);
    return out;
  }

 private:
  struct Extent {
    std::int64_t whole = 1;
    std::int64_t small = 1;
  };

  [[nodiscard]] Diag misfit(const std::string& reason) const {
    return make_diag(DiagCode::V201, {{"form", form_.name}, {"reason", reason}});
  }

  void cut_mesh(ReducedCase& out) {
    for (MeshAxis& axis : out.mesh.axes) {
      const auto refine = std::ranges::find(out.form.refines, axis.name, &Refine::axis);
      std::vector<MeshAxis> own = {axis};
      std::vector<MeshAxis>& parts = refine == out.form.refines.end() ? own : refine->parts;
      axis.size = 1;
      for (MeshAxis& part : parts) {
        mesh_extents_[part.name] = {.whole = part.size, .small = std::min(part.size, cut_)};
        part.size = std::min(part.size, cut_);
        axis.size *= part.size;
      }
    }
  }

  [[nodiscard]] Checked<Extent> extent_of(const MeshRef& axes) const {
    Extent extent;
    for (const std::string& name : axes) {
      const auto found = mesh_extents_.find(name);
      if (found == mesh_extents_.end()) {
        return misfit("it names mesh axis `" + name + "`, which the mesh lacks");
      }
      extent.whole *= found->second.whole;
      extent.small *= found->second.small;
    }
    return extent;
  }

  // A digit placed on mesh axes gets one value per coordinate.
  Checked<Ok> bind(const std::string& digit, const MeshRef& axes) {
    HP_TRY(const Extent extent, extent_of(axes));
    const auto [known, fresh] = bound_.try_emplace(digit, extent.small);
    if (known->second == extent.small) return Ok{};
    return make_diag(DiagCode::V202,
                     {{"what", "the reduced form, whose digit `" + digit +
                                   "` is spread over mesh axes of different sizes,"}});
  }

  // A digit whose loop is skewed by mesh axes gets a multiple of their extent.
  void skew(const std::string& digit, const std::vector<std::string>& terms) {
    Extent extent;
    for (const std::string& term : terms) {
      const auto axis = mesh_extents_.find(term);  // else the digit of an outer loop
      if (axis == mesh_extents_.end()) continue;
      extent.whole *= axis->second.whole;
      extent.small *= axis->second.small;
    }
    Extent& known = skewed_[digit];
    if (extent.whole > known.whole) known = extent;
  }

  Checked<Ok> bind_digits() {
    for (const Place& place : form_.places) {
      for (const Placement& at : place.at) HP_REQUIRE_OK(bind(at.digit, at.axes));
    }
    for (const NestForm& nest : form_.nests) {
      for (const NestItem& item : nest.items) {
        if (const auto* const par = std::get_if<Par>(&item)) {
          HP_REQUIRE_OK(bind(par->digit, par->axes));
        }
        if (const auto* const loop = std::get_if<For>(&item)) skew(loop->digit, loop->skew);
      }
      if (!nest.leaf.order) continue;
      std::vector<std::string> names;
      for (const Scalar& scalar : nest.leaf.order->args) {
        if (const auto* const name = std::get_if<Name>(&scalar)) names.push_back(name->text);
      }
      if (!names.empty()) skew(names.front(), {names.begin() + 1, names.end()});
    }
    return Ok{};
  }

  // A slab's digit gets as many values as its token digit.
  Checked<Ok> bind_slots() {
    for (const Layout& layout : form_.layouts) {
      if (layout.map.function != "slab") continue;
      for (std::size_t i = 0; i + 1 < layout.map.args.size(); i += 2) {
        const auto* const slot = std::get_if<Name>(&layout.map.args[i]);
        const auto* const token = std::get_if<Name>(&layout.map.args[i + 1]);
        if (slot == nullptr || token == nullptr) return misfit("a slab of numbers");
        const auto from = bound_.contains(slot->text) ? slot : token;
        const auto to = from == slot ? token : slot;
        const auto known = bound_.find(from->text);
        if (known == bound_.end()) {
          const Extent turn = skewed_[slot->text].whole > skewed_[token->text].whole
                                  ? skewed_[slot->text]
                                  : skewed_[token->text];
          skewed_[slot->text] = skewed_[token->text] = turn;
        } else if (bound_.try_emplace(to->text, known->second).first->second != known->second) {
          return make_diag(
              DiagCode::V202,
              {{"what", "the reduced form, whose slots `" + slot->text + "` and tokens `" +
                            token->text + "` are spread over mesh axes of different sizes,"}});
        }
      }
    }
    return Ok{};
  }

  [[nodiscard]] std::int64_t small_extent(const Digit& digit) const {
    const std::int64_t extent = digit.extent.value_or(1);
    if (const auto found = bound_.find(digit.name); found != bound_.end()) return found->second;
    if (const auto found = skewed_.find(digit.name); found != skewed_.end()) {
      const Extent& turn = found->second;
      if (extent % turn.whole == 0) return turn.small * std::min(extent / turn.whole, cut_);
    }
    return std::min(extent, cut_);
  }

  void cut_digits(NormalForm& form) {
    for (Split& split : form.splits) {
      Extent& blocks = blocks_[split.axis];
      for (Digit& digit : split.digits) {
        blocks.whole *= digit.extent.value_or(1);
        const std::int64_t extent = small_extent(digit);
        blocks.small *= extent;
        if (digit.extent) digit.extent = extent;
      }
    }
  }

  [[nodiscard]] Checked<Ok> check_layouts() const {
    for (const Layout& layout : form_.layouts) {
      const auto blocks = blocks_.find(layout.axis);
      const bool is_cut = blocks != blocks_.end() && blocks->second.whole != blocks->second.small;
      if (layout.map.function == "table" && is_cut) {
        return make_diag(DiagCode::V202, {{"what", "the reduced form of the layout table of `" +
                                                       layout.axis + "`"}});
      }
    }
    return Ok{};
  }

  // Two grains per block. If blocks were uneven or empty, some still are.
  [[nodiscard]] std::int64_t small_size(const Axis& axis) const {
    const std::int64_t size = size_of(axis);
    const auto found = blocks_.find(axis.name);
    if (found == blocks_.end()) return size;
    const Extent& blocks = found->second;
    if (size < blocks.whole) return std::max<std::int64_t>(1, blocks.small - 1);
    const std::int64_t even = 2 * axis.align * blocks.small;
    return size % blocks.whole == 0 ? even : even - 1;
  }

  // Shrinks the tables of masks to fit their keys: one segment id per position, and one page for
  // all keys, because no block depends on which page holds which keys.
  void cut_tables(ReducedCase& out, std::map<std::string, std::int64_t>& sizes) const {
    for (Nest& nest : out.program.nests) {
      for (Stmt& stmt : nest.stmts) {
        for (Mask& mask : stmt.masks) {
          const MaskCall call = read_mask(mask);
          if (!call.contract->table) continue;
          const Buffer& buffer = *find_buffer(program_, call.data);
          std::int64_t& length = sizes[std::get<std::string>(buffer.dims.back())];
          length = call.contract->number ? 1 : sizes[call.keys];
          if (call.contract->number) mask.call.args[call.contract->axes()] = sizes[call.keys];
        }
      }
    }
  }

  // Axes that a mask compares, or that an access substitutes for each other.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> related() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const Nest& nest : program_.nests) {
      for (const Stmt& stmt : nest.stmts) {
        for (const Mask& mask : stmt.masks) {
          const MaskCall call = read_mask(mask);
          if (call.contract->queries) pairs.emplace_back(call.queries, call.keys);
        }
        for (const auto* const side : {&stmt.targets, &stmt.operands}) {
          for (const Access& access : *side) {
            for (const Rename& rename : access.renames) {
              if (!rename.member.empty()) continue;  // a route relates no lengths
              pairs.emplace_back(rename.axis, rename.source);
            }
          }
        }
      }
    }
    return pairs;
  }

  // Equal sizes stay equal, and unequal sizes keep their order, because masks depend on it.
  void cut_axes(ReducedCase& out) const {
    std::map<std::string, std::int64_t> sizes;
    for (const Axis* const axis : axes_of(program_)) sizes[axis->name] = small_size(*axis);
    for (const auto& [first, second] : related()) {
      const std::int64_t a = size_of(*find_axis(program_, first));
      const std::int64_t b = size_of(*find_axis(program_, second));
      const std::int64_t common = std::max(sizes[first], sizes[second]);
      if (a == b) {
        sizes[first] = sizes[second] = common;
        continue;
      }
      const std::int64_t times = std::clamp<std::int64_t>(std::max(a, b) / std::min(a, b), 2, cut_);
      if (blocks_.contains(a > b ? first : second)) sizes[a > b ? first : second] = common * times;
    }
    cut_tables(out, sizes);
    for (Decl& decl : out.program.decls) {
      if (auto* const axis = std::get_if<Axis>(&decl)) axis->size = Poly{sizes[axis->name], {}};
    }
  }

  const Program& program_;
  const Mesh& mesh_;
  const NormalForm& form_;
  std::int64_t cut_;
  std::map<std::string, Extent> mesh_extents_;  // refinements applied
  std::map<std::string, std::int64_t> bound_;   // per digit on mesh axes: its small extent
  std::map<std::string, Extent> skewed_;        // per digit: the mesh axes that skew its loop
  std::map<std::string, Extent> blocks_;        // per split axis
};

}  // namespace

Checked<std::vector<ReducedCase>> reduced_cases(const Program& program, const Mesh& mesh,
                                                const NormalForm& form) {
  HP_REQUIRE_OK(check_mesh(mesh));
  HP_REQUIRE_OK(check_program(program));
  HP_TRY(ReducedCase three, Reducer(program, mesh, form, kSmallCut).run());
  HP_TRY(ReducedCase four, Reducer(program, mesh, form, kLargeCut).run());
  const bool same = three.mesh == four.mesh && three.form == four.form;
  std::vector<ReducedCase> cases = {std::move(three)};
  if (!same) cases.push_back(std::move(four));
  return cases;
}

}  // namespace harpe
