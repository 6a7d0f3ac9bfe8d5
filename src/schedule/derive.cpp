#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

// Consecutive moves at one position that one stage or drain step can make.
struct MoveGroup {
  std::vector<Move> moves;
  std::optional<std::string> at;  // the loop directly around them
};

bool have_one_step(const Move& a, const Move& b) {
  return a.kind == b.kind && a.over == b.over && a.how == b.how && a.by == b.by;
}

std::vector<MoveGroup> group_moves(const NestForm& nest) {
  std::vector<MoveGroup> groups;
  std::optional<std::string> at;
  bool continues = false;
  for (const NestItem& item : nest.items) {
    if (const auto* loop = std::get_if<For>(&item)) at = loop->digit;
    const auto* move = std::get_if<Move>(&item);
    if (move != nullptr) {
      if (!continues || !have_one_step(groups.back().moves.front(), *move)) {
        groups.push_back({{}, at});
      }
      groups.back().moves.push_back(*move);
    }
    continues = move != nullptr;
  }
  return groups;
}

class Derivation {
 public:
  Derivation(const Program& program, Script script)
      : program_(program), script_(std::move(script)) {}

  void derive(const NormalForm& form) {
    derive_axes(form);
    for (const NestForm& nest : form.nests) derive_nest(nest);
    for (const Fuse& fuse : form.fuses) {
      add(FuseNests{fuse.name, fuse.nests, fuse.persistent, fuse.sm, fuse.warps});
    }
  }

  Script take() { return std::move(script_); }

 private:
  void add(const Primitive& primitive) { script_.steps.push_back(to_step(primitive)); }

  void derive_axes(const NormalForm& form) {
    for (const Split& split : form.splits) {
      Tile step{split.axis, {}, {}};
      for (const Digit& digit : split.digits) {
        if (digit.extent) step.factors.push_back(*digit.extent);
        step.digits.push_back(digit.name);
      }
      add(step);
    }
    for (const Refine& refine : form.refines) {
      RefineAxis step{script_.mesh, refine.axis, {}, {}};
      for (const MeshAxis& part : refine.parts) {
        step.factors.push_back(part.size);
        step.parts.push_back(part.name);
      }
      add(step);
    }
    for (const Place& place : form.places) {
      for (const Placement& at : place.at) add(Shard{place.buffer, at.digit, at.axes});
      for (const PartialHome& home : place.partial) {
        add(Partial{place.buffer, home.monoid, home.axes});
      }
    }
    for (const Layout& layout : form.layouts) derive_layout(layout);
  }

  void derive_layout(const Layout& layout) {
    if (layout.map.function == "slab") return derive_slab(layout);
    for (const BalanceKind kind : {BalanceKind::Zigzag, BalanceKind::Stripe, BalanceKind::Table}) {
      if (print(kind) == layout.map.function) add(Balance{layout.axis, kind, layout.map.args});
    }
  }

  void derive_slab(const Layout& layout) {
    RouteLayout step{"", RouteLayoutKind::Slab, {}};
    for (const Decl& decl : program_.decls) {
      const auto* route = std::get_if<Route>(&decl);
      if (route != nullptr && route->slots.back() == layout.axis) step.route = route->name;
    }
    for (const Scalar& arg : layout.map.args) {
      if (const auto* name = std::get_if<Name>(&arg)) step.digits.push_back(name->text);
    }
    add(step);
  }

  void derive_nest(const NestForm& nest) {
    for (const NestItem& item : nest.items) {
      if (const auto* par = std::get_if<Par>(&item)) {
        add(Parallelize{nest.nest, par->digit, par->axes});
      }
    }
    std::vector<For> loops;
    for (const NestItem& item : nest.items) {
      if (const auto* loop = std::get_if<For>(&item)) loops.push_back(*loop);
    }
    for (const For& loop : loops) add(Serialize{nest.nest, loop.digit});
    for (const For& loop : loops) {
      if (loop.skew.empty() && loop.offset == 0) continue;
      const auto offset = loop.offset == 0 ? std::nullopt : std::optional(loop.offset);
      add(Shift{{nest.nest, loop.digit}, loop.skew, offset});
    }
    for (const For& loop : loops) {
      if (loop.reverse) add(Reverse{{nest.nest, loop.digit}});
    }
    derive_moves(nest);
    derive_leaf(nest);
  }

  void derive_moves(const NestForm& nest) {
    const std::vector<MoveGroup> groups = group_moves(nest);
    for (const MoveGroup& group : groups) {
      const Move& first = group.moves.front();
      std::vector<std::string> buffers;
      for (const Move& move : group.moves) buffers.push_back(move.buffer);
      if (first.kind == MoveKind::Stage) {
        add(Stage{nest.nest, buffers, first.over, group.at, first.how, first.by});
      } else {
        add(Drain{nest.nest, buffers, first.over, group.at, first.how, first.by});
      }
    }
    // Sets each attribute for all moves before the next attribute, as people write scripts. A
    // transport comes before its signal, because it must offer the signal.
    derive_attribute(nest, groups, &Move::depth, [](auto address, std::int64_t depth) {
      return Pipeline{address.nest, address.buffers, address.over, address.move, depth};
    });
    derive_attribute(nest, groups, &Move::chunk, [](auto address, const std::string& digit) {
      return ChunkMove{address.nest, address.buffers, address.over, address.move, digit};
    });
    derive_attribute(nest, groups, &Move::wire, [](auto address, DType wire) {
      return Compress{address.nest, address.buffers, address.over, address.move, wire};
    });
    derive_attribute(nest, groups, &Move::via, [](auto address, Via via) {
      return Bind{address.nest, address.buffers, address.over, address.move, via};
    });
    derive_signals(nest, groups);
    derive_attribute(nest, groups, &Move::sm, [](auto address, std::int64_t sm) {
      return Budget{address.nest, address.buffers, address.over, address.move, sm};
    });
  }

  // One step for each run of moves in a group with equal attributes.
  template <class T, class Make>
  void derive_attribute(const NestForm& nest, const std::vector<MoveGroup>& groups,
                        std::optional<T> Move::* member, Make make) {
    for (const MoveGroup& group : groups) {
      for (std::size_t i = 0; i < group.moves.size();) {
        const std::optional<T>& value = group.moves[i].*member;
        std::size_t end = i + 1;
        while (end < group.moves.size() && group.moves[end].*member == value) ++end;
        if (value) add(make(address_of(nest, group, i, end), *value));
        i = end;
      }
    }
  }

  void derive_signals(const NestForm& nest, const std::vector<MoveGroup>& groups) {
    for (const MoveGroup& group : groups) {
      for (std::size_t i = 0; i < group.moves.size();) {
        const Move& move = group.moves[i];
        std::size_t end = i + 1;
        while (end < group.moves.size() && group.moves[end].signal == move.signal &&
               group.moves[end].fence == move.fence) {
          ++end;
        }
        if (move.signal || move.fence) {
          const MoveAddress address = address_of(nest, group, i, end);
          add(SignalBy{address.nest, address.buffers, address.over, address.move, move.signal,
                       move.fence});
        }
        i = end;
      }
    }
  }

  // States the kind of move only if a buffer has both kinds over the same axes.
  static MoveAddress address_of(const NestForm& nest, const MoveGroup& group, std::size_t begin,
                                std::size_t end) {
    const Move& first = group.moves.front();
    MoveAddress address{nest.nest, {}, first.over, std::nullopt};
    for (std::size_t i = begin; i < end; ++i) {
      const Move& move = group.moves[i];
      address.buffers.push_back(move.buffer);
      for (const NestItem& item : nest.items) {
        const auto* other = std::get_if<Move>(&item);
        if (other != nullptr && other->kind != move.kind && other->buffer == move.buffer &&
            other->over == move.over) {
          address.move = move.kind;
        }
      }
    }
    return address;
  }

  void derive_leaf(const NestForm& nest) {
    const LeafChoice& leaf = nest.leaf;
    if (leaf.chunk) {
      ChunkLeaf step{nest.nest, "leaf", *leaf.chunk, std::nullopt};
      if (leaf.order) {
        step.order.emplace();
        for (const Scalar& argument : leaf.order->args) {
          if (const auto* name = std::get_if<Name>(&argument)) step.order->push_back(name->text);
        }
      }
      add(step);
    }
    if (leaf.kernel) {
      add(Patch{nest.nest, Quoted{*leaf.kernel}, leaf.sm});
    } else if (leaf.sm) {
      add(Budget{nest.nest, std::nullopt, std::nullopt, std::nullopt, *leaf.sm});
    }
  }

  const Program& program_;
  Script script_;
};

}  // namespace

Script derive_script(const Program& program, const Mesh& mesh, const NormalForm& form) {
  Derivation derivation(program, Script{form.name, program.name, mesh.name, {}});
  derivation.derive(canonicalise(program, form));
  return derivation.take();
}

}  // namespace harpe
