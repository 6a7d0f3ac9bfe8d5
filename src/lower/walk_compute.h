#pragma once

#include <vector>

#include "lower/walk.h"

namespace harpe {

// Makes the compute task of one rank at one step: the iteration blocks that it runs, the slots of
// its operands, and the partial states that it starts or adds to.
class Computer {
 public:
  Computer(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt);

  // Errors: F214.
  [[nodiscard]] Checked<Ok> run(Time t, const Stager& stager, std::vector<Drainer>& drainers);

 private:
  // A buffer's blocks as a function of the iteration block: base + one of the free offsets.
  struct Indexing {
    int buffer;
    std::vector<BlockId> strides;  // per iteration digit
    std::vector<BlockId> free;     // over digits the iteration does not have
  };
  // The blocks of a buffer that a task accesses.
  struct Touched {
    std::vector<std::uint8_t> flags;  // per block of the buffer
    std::vector<BlockId> blocks;      // ascending
  };
  struct IterationAxis {
    int axis;
    std::vector<std::size_t> digits;  // positions in NestSpace::digits
  };

  [[nodiscard]] Indexing index_buffer(int buffer, const std::vector<int>& follows) const;
  [[nodiscard]] bool is_skipped(const std::vector<std::int32_t>& values) const;
  [[nodiscard]] Interval interval_of(std::size_t iteration_axis,
                                     const std::vector<std::int32_t>& values) const;
  // Fills `touched_`.
  [[nodiscard]] std::vector<BlockId> run_blocks(Time t, RankId rank);
  [[nodiscard]] std::vector<BlockId> chosen_blocks(const DraftTask& task, std::size_t operand,
                                                   const Source& source) const;
  [[nodiscard]] std::vector<BlockId> found_blocks(const BufferTable& buffer, const Region& region,
                                                  const Touched& touched) const;
  [[nodiscard]] Checked<Ok> add_reads(DraftTask& task, std::size_t operand, const Stager& stager);
  // Errors: F241.
  [[nodiscard]] Checked<Ok> add_writes(DraftTask& task, Drainer& drainer, Time t);
  void forget_touched();
  void add_write(DraftTask& task, int slot, const std::vector<BlockId>& made);
  [[nodiscard]] std::int32_t kernel_of(Time t, RankId rank);

  DraftWriter& writer_;
  const NestSpace& space_;
  const NestStmt& stmt_;
  std::vector<Indexing> indexings_;  // operands, then targets
  std::vector<Touched> touched_;     // by the current task, per indexing
  std::vector<IterationAxis> axes_;
  std::size_t query_axis_ = 0;  // of the mask: positions in axes_
  std::size_t key_axis_ = 0;
  std::vector<std::int32_t> launch_;       // per rank: the running kernel
  std::vector<std::int32_t> launch_step_;  // the scheduled time it belongs to
};

}  // namespace harpe
