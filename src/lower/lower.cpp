#include "lower/lower.h"

#include <algorithm>
#include <utility>

#include "ir/instantiate.h"
#include "lower/collectives.h"
#include "lower/derive.h"
#include "lower/draft.h"
#include "lower/eliminate.h"
#include "lower/emit.h"
#include "lower/order.h"
#include "lower/reduce.h"
#include "lower/scatter.h"
#include "lower/transfers.h"

namespace harpe {
namespace {

DraftTask boundary_task(TaskKind kind, RankId rank, bool is_barrier) {
  DraftTask task;
  task.rank = rank;
  task.queue = QueueKind::Host;
  task.kind = kind;
  task.is_barrier = is_barrier;
  return task;
}

// D11: the boundary is part of the plan. Barrier nodes that stay unused are dropped.
void add_entries(Draft& draft) {
  for (RankId rank(0); rank.value < draft.blocks.ranks(); ++rank.value) {
    draft.tasks.push_back(boundary_task(TaskKind::Entry, rank, false));
  }
  draft.tasks.push_back(boundary_task(TaskKind::Entry, RankId(0), true));
}

void add_exits(Draft& draft) {
  draft.tasks.push_back(boundary_task(TaskKind::Exit, RankId(0), true));
  for (RankId rank(0); rank.value < draft.blocks.ranks(); ++rank.value) {
    draft.tasks.push_back(boundary_task(TaskKind::Exit, rank, false));
  }
}

// D14 may need digits that the form lacks; each round adds one.
Checked<NormalForm> add_scatter_digits(const Program& program, const Mesh& mesh, NormalForm form) {
  while (true) {
    HP_TRY(const Blocks blocks, Blocks::make(program, mesh, form));
    std::optional<NormalForm> finer;
    for (std::size_t nest = 0; nest < program.nests.size() && !finer; ++nest) {
      const NestForm* nest_form = find_nest(form, program.nests[nest].name);
      if (nest_form == nullptr) continue;  // derive reports it
      HP_TRY(const NestSpace space,
             NestSpace::make(program, blocks, static_cast<int>(nest), *nest_form));
      finer = with_scatter_digit(form, program, blocks, space);
    }
    if (!finer) return form;
    form = std::move(*finer);
  }
}

Checked<Draft> begin_draft(const Program& program, const Mesh& mesh, const NormalForm& form) {
  HP_TRY(Blocks blocks, Blocks::make(program, mesh, form));
  Draft draft{.program = program,
              .mesh = mesh,
              .form = form,
              .blocks = std::move(blocks),
              .nest_digits = {},
              .slots = {},
              .tasks = {}};
  for (const Nest& nest : program.nests) {
    draft.nest_digits.push_back(iteration_digits(program, draft.blocks, nest));
  }
  return draft;
}

class Pipeline {
 public:
  explicit Pipeline(const LowerOptions& options)
      : options_(options), since_(std::chrono::steady_clock::now()) {}

  // Errors: I505.
  Checked<Ok> done(std::string_view stage, const Draft& draft) {
    const auto now = std::chrono::steady_clock::now();
    if (options_.after_stage) {
      options_.after_stage(stage, [&] { return print(draft); }, now - since_);
    }
    since_ = std::chrono::steady_clock::now();
    return options_.limit.check(kLowering);
  }

 private:
  const LowerOptions& options_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

Checked<Ok> check_rules(const Program& program, const Mesh& mesh, const NormalForm& form) {
  HP_TRY(const NormalForm finer, add_scatter_digits(program, mesh, form));
  HP_TRY(Draft draft, begin_draft(program, mesh, finer));
  return check_nests(draft);
}

Checked<Plan> lower(const Program& program, const Mesh& mesh, const NormalForm& form,
                    const LowerOptions& options) {
  Pipeline pipeline(options);
  const bool model = options.space_time_only;
  HP_TRY(const NormalForm finer,
         model ? Checked<NormalForm>(form) : add_scatter_digits(program, mesh, form));
  HP_TRY(Draft draft, begin_draft(program, mesh, finer));
  add_entries(draft);
  HP_REQUIRE_OK(derive(draft, model, options.limit));
  HP_REQUIRE_OK(pipeline.done("derive", draft));
  if (!model) {
    remove_dead_transfers(draft);
    HP_REQUIRE_OK(pipeline.done("dead", draft));
    remove_redundant_transfers(draft);
    HP_REQUIRE_OK(pipeline.done("redundant", draft));
    pack_strided_transfers(draft);
    HP_REQUIRE_OK(pipeline.done("pack", draft));
    recognise_collectives(draft);
    HP_REQUIRE_OK(pipeline.done("collectives", draft));
    merge_transfers(draft);
    HP_REQUIRE_OK(pipeline.done("merge", draft));
  }
  add_exits(draft);
  HP_REQUIRE_OK(order_by_memory(draft, !model, options.limit));
  if (!model) fold_entries(draft);
  HP_REQUIRE_OK(pipeline.done("order", draft));
  HP_REQUIRE_OK(reduce_order(draft, !model, options.most_order_bytes, options.limit));
  HP_REQUIRE_OK(pipeline.done("reduce", draft));
  return emit(std::move(draft), options.limit);
}

}  // namespace harpe
