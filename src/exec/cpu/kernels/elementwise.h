#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace harpe {

// dst[i] = src[i] in another type, rounded once to nearest even. NaN stays NaN; equal types are
// copied bit by bit. Requires: floating types if they differ; no partial overlap.
void convert(void* dst, DType dst_dtype, const void* src, DType src_dtype, std::int64_t n);

// state[i] += src[i]. Requires: state is f32 or f64, src floating.
void add(void* state, DType state_dtype, const void* src, DType src_dtype, std::int64_t n);

// state[i] += scale * src[i]. Requires: as add.
void add_scaled(void* state, DType state_dtype, double scale, const void* src, DType src_dtype,
                std::int64_t n);

// dst[i] = value, rounded once: 0 and -inf are the identities of sum and lse.
void fill(void* dst, DType dtype, double value, std::int64_t n);

// (o, lse) = (o, lse) combined with (o2, lse2), all of state_dtype (f32 or f64): o normalised rows,
// lse natural. A side whose lse is -inf is the identity, whatever its o contains.
void lse_combine(void* o, std::int64_t o_row_stride, void* lse, std::int64_t lse_stride,
                 const void* o2, std::int64_t o2_row_stride, const void* lse2,
                 std::int64_t lse2_stride, std::int64_t rows, std::int64_t value_dim,
                 DType state_dtype);

}  // namespace harpe
