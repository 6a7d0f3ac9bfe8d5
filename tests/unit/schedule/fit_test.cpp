#include "schedule/fit.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

MachineLevel level(const char* name, LevelKind kind, std::int64_t size) {
  MachineLevel line;
  line.name = name;
  line.kind = kind;
  line.size = size;
  return line;
}

TransportRate transport(const char* via, const char* level) {
  TransportRate line;
  line.via = via;
  line.level = level;
  return line;
}

// Pairs joined by a switch for copy engines; only proxies and the library cross the rails.
Machine pairs() {
  Machine machine;
  machine.levels = {level("link", LevelKind::Switch, 2), level("rail", LevelKind::Rail, 4)};
  machine.transports = {transport("ce", "link"), transport("sm", "link"), transport("nccl", "link"),
                        transport("proxy", "rail"), transport("nccl", "rail")};
  return machine;
}

const Mesh kMesh{.name = "m", .axes = {{"node", 4}, {"gpu", 2}}};

NormalForm form_of(Move move) {
  NormalForm form;
  form.nests.push_back({.nest = "mm", .items = {std::move(move)}, .leaf = {}});
  return form;
}

Move stage(MeshRef over, How how) {
  Move move;
  move.buffer = "a";
  move.over = std::move(over);
  move.how = how;
  move.signal = Signal::Event;
  return move;
}

Move fitted_move(const NormalForm& form) {
  const FittedForm fitted = fit_transports(form, kMesh, pairs());
  EXPECT_EQ(fitted.refits.size(), 1U);
  return std::get<Move>(fitted.form.nests[0].items[0]);
}

TEST(Fit, what_the_machine_has_stays) {
  const NormalForm form = form_of(stage({"gpu"}, How::Relay));
  const FittedForm fitted = fit_transports(form, kMesh, pairs());
  EXPECT_EQ(fitted.form, form);
  EXPECT_TRUE(fitted.refits.empty());
}

TEST(Fit, between_nodes_copies_become_puts_that_their_source_starts) {
  const Move move = fitted_move(form_of(stage({"node"}, How::Relay)));
  EXPECT_EQ(move.via, Via::Proxy);
  EXPECT_EQ(move.by, Initiator::Src);
  EXPECT_EQ(move.signal, Signal::Flag);
}

TEST(Fit, bulk_moves_between_nodes_are_the_library_s) {
  const Move move = fitted_move(form_of(stage({"node"}, How::Bulk)));
  EXPECT_EQ(move.via, Via::Nccl);
  EXPECT_EQ(move.signal, std::nullopt);
}

TEST(Fit, across_both_levels_only_the_library_reaches_all) {
  EXPECT_EQ(fitted_move(form_of(stage({"node", "gpu"}, How::Relay))).via, Via::Nccl);
}

TEST(Fit, what_the_library_moves_is_started_by_all_ranks_together) {
  Move pushed = stage({"node", "gpu"}, How::Direct);
  pushed.by = Initiator::Src;
  const Move move = fitted_move(form_of(std::move(pushed)));
  EXPECT_EQ(move.via, Via::Nccl);
  EXPECT_EQ(move.by, std::nullopt) << "`bind` refuses it (S453)";
}

TEST(Fit, a_refined_axis_crosses_what_its_parts_do) {
  NormalForm form = form_of(stage({"inner"}, How::Relay));
  form.refines = {{.axis = "node", .parts = {{"outer", 2}, {"inner", 2}}}};
  EXPECT_EQ(fitted_move(form).via, Via::Proxy);
}

TEST(Fit, moves_in_place_stay) {
  const NormalForm form = form_of(stage({"node"}, How::Inline));
  EXPECT_EQ(fit_transports(form, kMesh, pairs()).form, form);
}

TEST(Fit, where_there_is_no_way_the_move_stays) {
  Machine machine = pairs();
  std::erase_if(machine.transports, [](const auto& line) { return line.level == "rail"; });
  const NormalForm form = form_of(stage({"node"}, How::Relay));
  const FittedForm fitted = fit_transports(form, kMesh, machine);
  EXPECT_EQ(fitted.form, form);
  EXPECT_TRUE(fitted.refits.empty());
}

}  // namespace
}  // namespace harpe
