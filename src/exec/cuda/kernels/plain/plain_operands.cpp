#include "exec/cuda/kernels/plain/plain_operands.h"

namespace harpe::cuda {
namespace {

device::PlainTable plain_table(const IndexTable& table) {
  return {.data = static_cast<const std::int32_t*>(table.data), .stride = table.stride};
}

}  // namespace

device::PlainMatrix plain(const MatrixView& matrix, device::Number number) {
  return {.data = matrix.data,
          .number = number,
          .row_stride = matrix.row_stride,
          .column_stride = matrix.column_stride};
}

device::PlainMask plain(const Visibility& visible) {
  return {.low = visible.low, .high = visible.high, .prefix = visible.prefix};
}

device::PlainTables tables_of(const MaskTables& tables,
                              std::span<const std::int64_t, actions::kMaskTables> bytes) {
  device::PlainTables result{.documents = plain_table(tables.documents),
                             .length = plain_table(tables.length),
                             .pages = plain_table(tables.pages),
                             .page_count = tables.page_count,
                             .page = tables.page,
                             .first_query = tables.first_query,
                             .first_key = tables.first_key,
                             .any = tables.any()};
  std::size_t at = 0;
  for (device::PlainTable* const table : {&result.documents, &result.length, &result.pages}) {
    if (table->data != nullptr) table->data = moved(table->data, bytes[at]);
    ++at;
  }
  return result;
}

}  // namespace harpe::cuda
