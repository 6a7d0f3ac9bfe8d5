#include "tests/property/lower/oracle.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/blocks.h"
#include "ir/text.h"
#include "support/check.h"

namespace harpe::oracle {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  HP_CHECK(pipe != nullptr, "cannot start " + command);
  std::string output;
  std::array<char, 65536> chunk{};
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), pipe.get())) {
    output.append(chunk.data(), count);
  }
  return output;
}

Record read_record(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  Record record{.name = json.at("name"),
                .program = json.at("program"),
                .mesh = json.at("mesh"),
                .form = json.at("form"),
                .accepted = json.value("accepted", false),
                .reason = json.value("reason", ""),
                .transfers = {},
                .syncs = json.value("syncs", std::int64_t{0}),
                .boundary = json.value("boundary", std::int64_t{0})};
  if (!record.accepted) return record;
  for (const nlohmann::json& row : json.at("transfers")) {
    record.transfers.push_back(
        {.source = row.at(0), .destination = row.at(1), .buffer = row.at(2), .blocks = row.at(3)});
  }
  std::ranges::sort(record.transfers);
  return record;
}

template <class Value>
Value parse_text(const std::string& text, Checked<Value> (*parse)(Cursor&)) {
  Checked<Cursor> cursor = Cursor::open(text);
  HP_CHECK(cursor.ok(), render(cursor.error()));
  Checked<Value> value = parse(cursor.value());
  HP_CHECK(value.ok(), render(value.error()) + "\n" + text);
  return std::move(value).value();
}

void append_box(const Box& box, const BufferTable& buffer, std::vector<std::int64_t>& blocks) {
  std::vector<std::int64_t> ids{0};
  for (std::size_t digit = 0; digit < box.size(); ++digit) {
    std::vector<std::int64_t> wider;
    for (const std::int64_t id : ids) {
      for (std::int32_t value = box[digit].lo; value < box[digit].hi; ++value) {
        wider.push_back(id + value * buffer.strides[digit]);
      }
    }
    ids = std::move(wider);
  }
  blocks.insert(blocks.end(), ids.begin(), ids.end());
}

}  // namespace

std::vector<Record> read_records(const std::string& arguments) {
  const std::string script = std::string(HARPE_SOURCE_DIR) + "/tests/oracle/dump.py";
  std::istringstream lines(
      output_of(std::string(HARPE_PYTHON) + " -B " + script + " " + arguments));
  std::vector<Record> records;
  for (std::string line; std::getline(lines, line);) records.push_back(read_record(line));
  return records;
}

Program parse_program_text(const std::string& text) { return parse_text(text, &parse_program); }
Mesh parse_mesh_text(const std::string& text) { return parse_text(text, &parse_mesh); }
NormalForm parse_form_text(const std::string& text) { return parse_text(text, &parse_form); }

void make_capable(NormalForm& form) {
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      auto* const move = std::get_if<Move>(&item);
      if (move != nullptr && move->how == How::Inline && move->via) move->via = Via::Sm;
    }
  }
}

std::vector<Transfer> transfers_of(const Plan& plan) {
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), render(blocks.error()));
  std::vector<Transfer> transfers;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy) continue;
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const Alloc& source = plan.allocs[task.reads[i].alloc.index()];
      const Alloc& destination = plan.allocs[task.writes[i].alloc.index()];
      const auto buffer = static_cast<std::size_t>(blocks->find_buffer(source.buffer));
      Transfer transfer{.source = source.rank.value,
                        .destination = destination.rank.value,
                        .buffer = source.buffer,
                        .blocks = {}};
      for (const Box& box : task.reads[i].boxes) {
        append_box(box, blocks->buffers()[buffer], transfer.blocks);
      }
      std::ranges::sort(transfer.blocks);
      transfers.push_back(std::move(transfer));
    }
  }
  std::ranges::sort(transfers);
  return transfers;
}

Edges edges_of(const Plan& plan) {
  Edges edges;
  for (const Sync& sync : plan.syncs) {
    const bool boundary = plan.tasks[sync.from.index()].kind == TaskKind::Entry ||
                          plan.tasks[sync.to.index()].kind == TaskKind::Exit;
    ++(boundary ? edges.boundary : edges.inner);
  }
  for (const Barrier& barrier : plan.barriers) {
    edges.boundary += static_cast<std::int64_t>(barrier.from.size() + barrier.to.size());
  }
  return edges;
}

}  // namespace harpe::oracle
