#include "exec/cpu/run_action.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "exec/cpu/kernels/add_rms_norm.h"
#include "exec/cpu/kernels/attention.h"
#include "exec/cpu/kernels/attention_backward.h"
#include "exec/cpu/kernels/elementwise.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/pointwise.h"
#include "exec/cpu/kernels/rowdot.h"

namespace harpe::cpu {
namespace {

using actions::Action;
using actions::Add;
using actions::AddRmsNorm;
using actions::Apply;
using actions::Assign;
using actions::Attend;
using actions::Combine;
using actions::Differentiate;
using actions::element_at;
using actions::Fill;
using actions::for_each_turn;
using actions::kMaskTables;
using actions::Loop;
using actions::Multiply;
using actions::note_used;
using actions::RowDot;
using actions::SlotRows;
using actions::Sum;
using actions::TaskWork;

// Calls body(offsets) for every row along the ragged axis; offsets in elements, per operand.
template <std::size_t Operands, class Body>
void for_each_slot(const SlotRows<Operands>& slots, const Body& body) {
  const std::int64_t rows = slots.open();
  std::array<std::int64_t, Operands> offsets{};
  for (std::int64_t row = 0; row < rows; ++row) {
    body(offsets);
    for (std::size_t i = 0; i < Operands; ++i) offsets[i] += slots.strides[i];
  }
}

template <class T>
T* moved(T* data, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(data) + bytes;
}

void run_action(const Assign& assign) {
  const std::int64_t n = assign.rows.length();
  const auto bytes = static_cast<std::size_t>(n * size_in_bytes(assign.to.dtype));
  const bool same = assign.to.dtype == assign.from.dtype;
  for_each_slot(assign.slots, [&](const auto& offsets) {
    assign.rows.for_each([&](const auto& walk) {
      std::byte* const to =
          element_at(assign.to.data, offsets[0] + walk.offset(0), assign.to.dtype);
      const std::byte* const from =
          element_at(assign.from.data, offsets[1] + walk.offset(1), assign.from.dtype);
      if (same) {
        std::memcpy(to, from, bytes);
      } else {
        convert(to, assign.to.dtype, from, assign.from.dtype, n);
      }
    });
  });
}

void run_action(const Add& fold) {
  for_each_slot(fold.slots, [&](const auto& offsets) {
    fold.rows.for_each([&](const auto& walk) {
      add(element_at(fold.to.data, offsets[0] + walk.offset(0), fold.to.dtype), fold.to.dtype,
          element_at(fold.from.data, offsets[1] + walk.offset(1), fold.from.dtype), fold.from.dtype,
          fold.rows.length());
    });
  });
}

void run_action(const Apply& apply) {
  const PointwiseProblem& first = apply.first;
  for_each_slot(apply.slots, [&](const auto& offsets) {
    apply.rows.for_each([&](const auto& walk) {
      PointwiseProblem problem = first;
      const auto shift = [&](std::size_t operand, DType dtype) {
        return (offsets[operand] + walk.offset(operand)) * size_in_bytes(dtype);
      };
      problem.to = moved(problem.to, shift(0, first.to_dtype));
      problem.a.data = moved(problem.a.data, shift(1, first.a.dtype));
      if (first.b.data != nullptr) {
        problem.b.data = moved(problem.b.data, shift(2, first.b.dtype));
      }
      apply_pointwise(problem);
    });
  });
}

void run_action(const Fill& identity) {
  identity.rows.for_each([&](const auto& walk) {
    fill(element_at(identity.to.data, walk.offset(0), identity.to.dtype), identity.to.dtype,
         identity.value, identity.rows.length());
  });
}

// Part of a row at a time, which stays in the L1 cache.
constexpr std::int64_t kFoldElements = 1024;
struct FoldBuffer {
  alignas(64) std::array<std::byte, kFoldElements * sizeof(double)> bytes;
};

// `from`, or its values rounded to the wire type, in `buffer`.
const std::byte* round_to_wire(const std::byte* from, DType& dtype, std::optional<DType> wire,
                               std::int64_t n, FoldBuffer& buffer) {
  if (!wire || *wire == dtype) return from;
  convert(buffer.bytes.data(), *wire, from, dtype, n);
  dtype = *wire;
  return buffer.bytes.data();
}

void run_action(const Sum& sum) {
  FoldBuffer state;
  FoldBuffer rounded;
  sum.rows.for_each([&](const auto& walk) {
    for (std::int64_t begin = 0; begin < sum.rows.length(); begin += kFoldElements) {
      const std::int64_t n = std::min(kFoldElements, sum.rows.length() - begin);
      for (std::size_t i = 0; i < sum.from.size(); ++i) {
        const auto& [view, wire] = sum.from[i];
        DType dtype = view.dtype;
        const std::byte* from = element_at(view.data, walk.offset(i + 1) + begin, dtype);
        from = round_to_wire(from, dtype, wire, n, rounded);
        if (i == 0) {
          convert(state.bytes.data(), sum.state, from, dtype, n);
        } else {
          add(state.bytes.data(), sum.state, from, dtype, n);
        }
      }
      convert(element_at(sum.to.data, walk.offset(0) + begin, sum.to.dtype), sum.to.dtype,
              state.bytes.data(), sum.state, n);
    }
  });
}

// A row's o, followed by its l, in one type.
class StateRow {
 public:
  StateRow(DType dtype, std::int64_t value_dim)
      : dtype_(dtype),
        value_dim_(value_dim),
        bytes_(static_cast<std::size_t>((value_dim + 1) * size_in_bytes(dtype))) {}

  [[nodiscard]] std::byte* o() { return bytes_.data(); }
  [[nodiscard]] std::byte* l() { return element_at(bytes_.data(), value_dim_, dtype_); }
  void load(const std::byte* o, DType o_dtype, const std::byte* l, DType l_dtype) {
    convert(this->o(), dtype_, o, o_dtype, value_dim_);
    convert(this->l(), dtype_, l, l_dtype, 1);
  }
  void store(std::byte* o, DType o_dtype, std::byte* l, DType l_dtype) {
    convert(o, o_dtype, this->o(), dtype_, value_dim_);
    convert(l, l_dtype, this->l(), dtype_, 1);
  }
  void combine(StateRow& other) {
    lse_combine(o(), value_dim_, l(), 1, other.o(), value_dim_, other.l(), 1, 1, value_dim_,
                dtype_);
  }

 private:
  DType dtype_;
  std::int64_t value_dim_;
  std::vector<std::byte> bytes_;
};

void run_action(const Combine& fold) {
  StateRow state(fold.state, fold.value_dim);
  StateRow source(fold.state, fold.value_dim);
  std::optional<StateRow> rounded;
  const auto load = [&](StateRow& into, const Combine::Side& side, std::int64_t row,
                        std::int64_t o_offset, std::int64_t l_offset) {
    const std::byte* const o =
        element_at(side.o + o_offset, row * side.row_strides[0], side.o_dtype);
    const std::byte* const l =
        element_at(side.l + l_offset, row * side.row_strides[1], side.l_dtype);
    if (!side.wire) return into.load(o, side.o_dtype, l, side.l_dtype);
    if (!rounded) rounded.emplace(*side.wire, fold.value_dim);  // a task has one wire type
    rounded->load(o, side.o_dtype, l, side.l_dtype);
    into.load(rounded->o(), *side.wire, rounded->l(), *side.wire);
  };
  for_each_turn(std::span(fold.loops), [&](const auto& offsets, bool) {
    for (std::int64_t row = 0; row < fold.rows; ++row) {
      load(state, fold.from[0], row, offsets[2], offsets[3]);
      for (std::size_t i = 1; i < fold.from.size(); ++i) {
        load(source, fold.from[i], row, offsets[2 + 2 * i], offsets[3 + 2 * i]);
        state.combine(source);
      }
      const Combine::Side& to = fold.to;
      state.store(element_at(to.o + offsets[0], row * to.row_strides[0], to.o_dtype), to.o_dtype,
                  element_at(to.l + offsets[1], row * to.row_strides[1], to.l_dtype), to.l_dtype);
    }
  });
}

void run_action(const Multiply& products) {
  note_used(products.result, products.used);
  const std::int64_t rows = products.used.of(products.first.m);
  for_each_turn(std::span<const Loop<3>>(products.loops), [&](const auto& offsets, bool again) {
    GemmProblem problem = products.first;
    problem.m = rows;
    problem.a.data = moved(problem.a.data, offsets[0]);
    problem.b.data = moved(problem.b.data, offsets[1]);
    problem.c = moved(problem.c, offsets[2]);
    problem.accumulate = problem.accumulate || again;
    if (rows > 0) multiply(problem);
  });
}

MaskTables moved(MaskTables tables, std::span<const std::int64_t, kMaskTables> bytes) {
  tables.documents.data = moved(tables.documents.data, bytes[0]);
  tables.length.data = moved(tables.length.data, bytes[1]);
  tables.pages.data = moved(tables.pages.data, bytes[2]);
  return tables;
}

void run_action(const Attend& heads) {
  for_each_turn(std::span(heads.loops), [&](const auto& offsets, bool) {
    AttentionProblem problem = heads.first;
    problem.q.data = moved(problem.q.data, offsets[0]);
    problem.k.data = moved(problem.k.data, offsets[1]);
    problem.v.data = moved(problem.v.data, offsets[2]);
    problem.o = moved(problem.o, offsets[3]);
    problem.lse = moved(problem.lse, offsets[4]);
    problem.tables = moved(problem.tables, std::span(offsets).template last<kMaskTables>());
    attend(problem);
  });
}

void run_action(const Differentiate& heads) {
  for_each_turn(std::span(heads.loops), [&](const auto& offsets, bool again) {
    AttentionBackwardProblem problem = heads.first;
    problem.q.data = moved(problem.q.data, offsets[0]);
    problem.k.data = moved(problem.k.data, offsets[1]);
    problem.v.data = moved(problem.v.data, offsets[2]);
    problem.d_o.data = moved(problem.d_o.data, offsets[3]);
    problem.lse.data = moved(problem.lse.data, offsets[4]);
    problem.delta.data = moved(problem.delta.data, offsets[5]);
    problem.dq.data = moved(problem.dq.data, offsets[6]);
    problem.dk.data = moved(problem.dk.data, offsets[7]);
    problem.dv.data = moved(problem.dv.data, offsets[8]);
    problem.tables = moved(problem.tables, std::span(offsets).template last<kMaskTables>());
    problem.dk.carry = problem.dk.carry || again;
    problem.dv.carry = problem.dv.carry || again;
    differentiate_attention(problem);
  });
}

void run_action(const RowDot& products) {
  for_each_turn(std::span<const Loop<3>>(products.loops), [&](const auto& offsets, bool) {
    RowDotProblem problem = products.first;
    problem.a.data = moved(problem.a.data, offsets[0]);
    problem.b.data = moved(problem.b.data, offsets[1]);
    problem.c = moved(problem.c, offsets[2]);
    multiply_rows(problem);
  });
}

void run_action(const AddRmsNorm& norm) {
  for_each_turn(std::span<const Loop<5>>(norm.loops), [&](const auto& offsets, bool) {
    AddRmsNormProblem problem = norm.first;
    problem.x.data = moved(problem.x.data, offsets[0]);
    problem.residual.data = moved(problem.residual.data, offsets[1]);
    problem.weight.data = moved(problem.weight.data, offsets[2]);
    problem.sum.data = moved(problem.sum.data, offsets[3]);
    problem.y.data = moved(problem.y.data, offsets[4]);
    add_rms_norm(problem);
  });
}

}  // namespace

void run(const TaskWork& work) {
  for (const Action& action : work.actions) {
    std::visit([](const auto& a) { run_action(a); }, action);
  }
}

}  // namespace harpe::cpu
