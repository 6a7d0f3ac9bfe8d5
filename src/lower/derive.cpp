#include "lower/derive.h"

#include <algorithm>

#include "lower/fuse.h"
#include "lower/transport_rules.h"
#include "lower/walk_compute.h"
#include "offers/offers.h"

namespace harpe {
namespace {

// Walks one statement of one nest over all its loops.
class StatementWalk {
 public:
  StatementWalk(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt,
                const TimeLimit& limit)
      : writer_(writer),
        space_(space),
        stmt_(stmt),
        limit_(limit),
        stager_(writer, space, stmt),
        computer_(writer, space, stmt) {}

  // Checks the rules that need no walk.
  Checked<Ok> check() {
    HP_REQUIRE_OK(begin());
    HP_REQUIRE_OK(stager_.check());
    for (const Drainer& drainer : drainers_) HP_REQUIRE_OK(drainer.check_relays());
    return Ok{};
  }

  Checked<Ok> run() {
    HP_REQUIRE_OK(begin());
    HP_REQUIRE_OK(visit());
    for (Drainer& drainer : drainers_) HP_REQUIRE_OK(drainer.finish());
    return Ok{};
  }

 private:
  Checked<Ok> begin() {
    HP_TRY(std::vector<StateGroup> groups,
           state_groups(writer_.blocks(), space_, stmt_, !writer_.space_time_only()));
    for (StateGroup& group : groups)
      drainers_.emplace_back(writer_, space_, stmt_, std::move(group));
    for (const Drainer& drainer : drainers_) HP_REQUIRE_OK(drainer.check());
    return Ok{};
  }

  Checked<Ok> visit() {
    HP_REQUIRE_OK(limit_.check(kLowering));
    const int position = static_cast<int>(time_.size());
    const bool scheduled = time_.size() <= space_.scheduled_loops;
    const std::int64_t before = writer_.next_position();
    if (scheduled) HP_REQUIRE_OK(stager_.run(position, time_, before));
    if (time_.size() == space_.loops.size()) {
      HP_REQUIRE_OK(computer_.run(time_, stager_, drainers_));
    } else {
      const std::int32_t extent = space_.loops[time_.size()].extent;
      for (std::int32_t step = 0; step < extent; ++step) {
        time_.push_back(step);
        HP_REQUIRE_OK(visit());
        time_.pop_back();
      }
    }
    if (!scheduled) return Ok{};
    const std::int64_t after = writer_.next_position();
    for (Drainer& drainer : drainers_) HP_REQUIRE_OK(drainer.run(position, time_, after));
    return Ok{};
  }

  DraftWriter& writer_;
  const NestSpace& space_;
  const NestStmt& stmt_;
  const TimeLimit& limit_;
  Stager stager_;
  Computer computer_;
  std::vector<Drainer> drainers_;
  std::vector<std::int32_t> time_;
};

// Calls visit(space, stmt) for every statement of every nest, in the program's order.
template <class Visit>
Checked<Ok> for_each_statement(Draft& draft, bool space_time_only, const Visit& visit) {
  for (std::size_t nest = 0; nest < draft.program.nests.size(); ++nest) {
    const NestForm* form = find_nest(draft.form, draft.program.nests[nest].name);
    if (form == nullptr) {
      return make_diag(DiagCode::F115,
                       {{"nest", draft.program.nests[nest].name}, {"form", draft.form.name}});
    }
    HP_TRY(const NestSpace space,
           NestSpace::make(draft.program, draft.blocks, static_cast<int>(nest), *form));
    for (const NestMove& move : space.moves) {
      if (!space_time_only) HP_REQUIRE_OK(check_transport(*move.spec));
    }
    for (const NestStmt& stmt : space.stmts) {
      const bool waits = !space_time_only && form->leaf.chunk.has_value();
      if (waits && !is_offered(stmt.stmt->leaf, &KernelOffer::chunks)) {
        return make_diag(DiagCode::F302, {{"leaf", stmt.stmt->leaf}});
      }
      HP_REQUIRE_OK(visit(space, stmt));
    }
  }
  return Ok{};
}

}  // namespace

Checked<Ok> derive(Draft& draft, bool space_time_only, const TimeLimit& limit) {
  DraftWriter writer(draft, space_time_only);
  for (std::size_t buffer = 0; buffer < draft.blocks.buffers().size(); ++buffer) {
    for (RankId rank(0); rank.value < draft.blocks.ranks(); ++rank.value) {
      writer.home(static_cast<int>(buffer), rank);
    }
  }
  HP_REQUIRE_OK(
      for_each_statement(draft, space_time_only, [&](const NestSpace& space, const NestStmt& stmt) {
        return StatementWalk(writer, space, stmt, limit).run();
      }));
  return fuse_kernels(draft);
}

Checked<Ok> check_nests(Draft& draft) {
  const TimeLimit none;
  DraftWriter writer(draft, false);
  HP_REQUIRE_OK(for_each_statement(draft, false, [&](const NestSpace& space, const NestStmt& stmt) {
    return StatementWalk(writer, space, stmt, none).check();
  }));
  return fuse_kernels(draft);
}

}  // namespace harpe
