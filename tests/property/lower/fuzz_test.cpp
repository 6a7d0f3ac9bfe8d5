#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "ir/text.h"
#include "lower/lower.h"
#include "plan/text.h"
#include "tests/property/lower/oracle.h"
#include "tests/support/internal_error.h"
#include "verify/verify.h"

// Random forms at indivisible sizes, with the default lowering: every accepted form must be proved
// right. To accept a wrong form is the worst fault of a compiler.
namespace harpe {
namespace {

using oracle::Record;
using Random = std::mt19937_64;

std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

bool chance(Random& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}

// Sizes around and below the number of blocks, so that some blocks are uneven and some are empty.
void make_odd(Program& program, Random& random) {
  for (Decl& decl : program.decls) {
    auto* axis = std::get_if<Axis>(&decl);
    if (axis == nullptr) continue;
    axis->size = Poly{.first = chance(random, 0.7) ? draw(random, 1, 24) : draw(random, 25, 400),
                      .rest = {}};
    axis->align = std::int64_t{1} << draw(random, 0, 4);
  }
}

// `mesh m = x:2, y:3` -> `mesh m = flat:6` seen through `refine flat = x:2 * y:3`.
void flatten_mesh(Mesh& mesh, NormalForm& form) {
  const std::int64_t ranks = mesh.ranks();
  form.refines.push_back({.axis = "flat", .parts = mesh.axes});
  mesh.axes = {{.name = "flat", .size = ranks}};
}

// Features that only the compiler supports: stripes, refinements, rounded transfers.
void extend(Mesh& mesh, NormalForm& form, Random& random) {
  if (chance(random, 0.3)) flatten_mesh(mesh, form);
  if (form.layouts.empty() && chance(random, 0.3)) {
    for (const Split& split : form.splits) {
      if (split.digits.size() < 2 || chance(random, 0.3)) continue;
      form.layouts.push_back(
          {.axis = split.axis,
           .map = {.function = "stripe", .args = {Name{split.digits.front().name}}}});
    }
  }
  if (!chance(random, 0.15)) return;
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      if (auto* move = std::get_if<Move>(&item)) move->wire = DType::BF16;
    }
  }
}

template <class Change>
void for_each_move(NormalForm& form, const Change& change) {
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      if (auto* move = std::get_if<Move>(&item)) change(nest, *move);
    }
  }
}

// Sends through NICs, under every fence policy and without a stated one.
void put_through_nics(NormalForm& form, Random& random) {
  for_each_move(form, [&](const NestForm&, Move& move) {
    if (move.how == How::Inline || chance(random, 0.4)) return;
    move.via = chance(random, 0.7) ? Via::Proxy : Via::Ibgda;
    move.by = Initiator::Src;
    const std::int64_t policy = draw(random, 0, 3);
    move.fence = policy == 3 ? std::nullopt : std::optional(static_cast<Fence>(policy));
  });
}

void drain_inline(NormalForm& form, Random& random) {
  for_each_move(form, [&](const NestForm&, Move& move) {
    if (move.kind != MoveKind::Drain || chance(random, 0.2)) return;
    move.how = How::Inline;
    move.via = Via::Sm;
    move.wire.reset();
    move.chunk.reset();
  });
}

// Drains to ranks that all keep the result.
void drain_one_shot(NormalForm& form, Random& random) {
  const std::vector<Place> places = form.places;
  for_each_move(form, [&](const NestForm&, Move& move) {
    const auto is_divided = [&](const Place& place) {
      return place.buffer == move.buffer && std::ranges::any_of(place.at, [&](const auto& at) {
               return std::ranges::find_first_of(at.axes, move.over) != at.axes.end();
             });
    };
    const bool may = move.kind == MoveKind::Drain && std::ranges::none_of(places, is_divided);
    if (may && chance(random, 0.7)) move.how = How::OneShot;
  });
}

bool crosses(const Move& move, const std::string& axis) {
  return std::ranges::find(move.over, axis) != move.over.end();
}

// One statement's outputs keep partial states along a mesh axis without a drain.
void keep_partial(const Program& program, NormalForm& form, Random& random) {
  const NestForm& nest = form.nests[static_cast<std::size_t>(
      draw(random, 0, static_cast<std::int64_t>(form.nests.size()) - 1))];
  std::vector<std::string> axes;
  for (const NestItem& item : nest.items) {
    if (const auto* par = std::get_if<Par>(&item)) {
      axes.insert(axes.end(), par->axes.begin(), par->axes.end());
    }
  }
  const Nest* const subject = find_nest(program, nest.nest);
  if (axes.empty() || subject == nullptr || subject->stmts.empty()) return;
  const std::string axis =
      axes[static_cast<std::size_t>(draw(random, 0, static_cast<std::int64_t>(axes.size()) - 1))];
  const Stmt& stmt = subject->stmts.front();
  for (const Access& target : stmt.targets) {
    const auto place = std::ranges::find(form.places, target.buffer, &Place::buffer);
    if (place == form.places.end()) continue;
    place->partial.push_back({.monoid = stmt.monoid, .axes = {axis}});
    if (!chance(random, 0.9)) continue;  // else refused: a drain combines the parts
    for (NestForm& each : form.nests) {
      std::erase_if(each.items, [&](const NestItem& item) {
        const auto* move = std::get_if<Move>(&item);
        return move != nullptr && move->kind == MoveKind::Drain && move->buffer == target.buffer &&
               crosses(*move, axis);
      });
    }
    if (chance(random, 0.95)) {  // nor is it placed along this axis
      std::erase_if(place->at, [&](const Placement& at) {
        return std::ranges::find(at.axes, axis) != at.axes.end();
      });
    }
  }
}

// Fuses some of the nests into one persistent kernel, beside transfers that need SMs.
void fuse_nests(NormalForm& form, Random& random) {
  Fuse fuse{.name = "together", .nests = {}, .persistent = true, .sm = {}, .warps = {}};
  for (const NestForm& nest : form.nests) {
    if (chance(random, 0.8)) fuse.nests.push_back(nest.nest);
  }
  if (fuse.nests.empty()) return;
  if (chance(random, 0.7)) fuse.sm = draw(random, 100, 132);
  form.fuses.push_back(std::move(fuse));
  if (!chance(random, 0.5)) return;
  for_each_move(form, [&](const NestForm&, Move& move) {
    if (move.how == How::Inline || chance(random, 0.5)) return;
    move.via = Via::Tma;
    move.fence.reset();
  });
}

// Features that the model lacks entirely.
void extend_further(const Program& program, NormalForm& form, Random& random) {
  oracle::make_capable(form);
  if (chance(random, 0.2)) put_through_nics(form, random);
  if (chance(random, 0.2)) drain_one_shot(form, random);
  if (chance(random, 0.2)) drain_inline(form, random);
  if (chance(random, 0.2)) keep_partial(program, form, random);
  if (chance(random, 0.2)) fuse_nests(form, random);
}

std::string describe(const Program& program, const Mesh& mesh, const NormalForm& form) {
  return print(program) + print(mesh) + print(form);
}

void expect_round_trip(const Plan& plan, const std::string& what) {
  const std::string text = print_plan(plan);
  const Checked<Plan> again = parse_plan(text, "fuzz.plan");
  ASSERT_TRUE(again.ok()) << render(again.error()) << "\n" << what;
  EXPECT_TRUE(*again == plan) << what;
}

class Fuzz {
 public:
  explicit Fuzz(std::uint64_t seed) : random_(seed) {}

  void run(const Record& record) {
    Program program = oracle::parse_program_text(record.program);
    Mesh mesh = oracle::parse_mesh_text(record.mesh);
    NormalForm form = oracle::parse_form_text(record.form);
    make_odd(program, random_);
    extend(mesh, form, random_);
    extend_further(program, form, random_);
    const std::string what = record.name + "\n" + describe(program, mesh, form);
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { prove(program, mesh, form, what); });
    ASSERT_FALSE(broken) << *broken << "\n" << what;
  }

  [[nodiscard]] int accepted() const { return accepted_; }

  void report(const std::string& title) const {
    std::printf("%s: %d accepted; refused", title.c_str(), accepted_);
    for (const auto& [code, count] : refused_) std::printf(" %s %d", code.c_str(), count);
    std::printf("; of those accepted");
    for (const auto& [feature, count] : features_) {
      std::printf(" %s %d", feature.c_str(), count);
    }
    std::printf("\n");
  }

 private:
  void prove(const Program& program, const Mesh& mesh, const NormalForm& form,
             const std::string& what) {
    const Checked<Plan> plan = lower(program, mesh, form);
    if (!plan.ok()) {
      ++refused_[std::string(info(plan.error().code).name)];
      return;
    }
    ++accepted_;
    const Checked<Certificate> certificate = verify(*plan);
    if (!certificate.ok() && certificate.error().code == DiagCode::V530) {
      ++refused_["V530"];  // the schedule's kernels do not fit together
      return;
    }
    count_features(*plan);
    ASSERT_TRUE(certificate.ok()) << render(certificate.error()) << "\n" << what;
    if (accepted_ % 8 == 0) expect_round_trip(*plan, what);
  }

  void count_features(const Plan& plan) {
    for (const Place& place : plan.form.places) {
      if (!place.partial.empty()) ++features_["partial home"];
    }
    const bool fused = std::ranges::any_of(plan.form.fuses, &Fuse::persistent);
    if (fused) ++features_["fused"];
    bool remote = false;
    for (const Task& task : plan.tasks) {
      for (const Ref& ref : task.writes) {
        remote =
            remote || (task.kind == TaskKind::Compute &&
                       plan.allocs[ref.alloc.index()].rank != plan.queues[task.queue.index()].rank);
      }
    }
    if (remote) ++features_["inline drain"];
    const bool fenced =
        std::ranges::any_of(plan.syncs, [](const Sync& sync) { return sync.fence.has_value(); });
    if (fenced) ++features_["fence"];
  }

  Random random_;
  int accepted_ = 0;
  std::map<std::string, int> features_;  // number of plans with the feature
  std::map<std::string, int> refused_;
};

// HARPE_FUZZ_SEED in the environment replaces the fixed seed.
int accepted_of(const std::string& kind, std::uint64_t seed) {
  if (const char* other = std::getenv("HARPE_FUZZ_SEED")) seed = std::strtoull(other, nullptr, 10);
  Fuzz fuzz(seed);
  const std::string arguments = "--texts --" + kind + " 2000 --seed " + std::to_string(seed);
  for (const Record& record : oracle::read_records(arguments)) {
    fuzz.run(record);
    if (testing::Test::HasFatalFailure()) break;
  }
  fuzz.report(arguments);
  return fuzz.accepted();
}

TEST(Fuzz, sensible_forms_at_odd_sizes_are_refused_or_proved_right) {
  EXPECT_GE(accepted_of("tied", 31), 2000 / 3);
}

TEST(Fuzz, independently_drawn_forms_at_odd_sizes_are_refused_or_proved_right) {
  EXPECT_GE(accepted_of("fuzz", 32), 50);
}

}  // namespace
}  // namespace harpe
