#include "compile/schedule_file.h"

#include "ir/text.h"
#include "support/whole_file.h"

namespace harpe {

const std::string& ScheduleFile::program() const {
  return script ? script->program : form->program;
}

const std::string& ScheduleFile::mesh() const { return script ? script->mesh : form->mesh; }

Checked<ScheduleFile> parse_schedule_file(const std::string& text, const std::string& path) {
  HP_TRY(Cursor cursor, Cursor::open(text, path));
  ScheduleFile file;
  if (cursor.at("schedule")) {
    HP_TRY(file.script, parse_script(cursor));
  }
  if (cursor.at("commir")) {
    HP_TRY(file.form, parse_form(cursor));
  }
  if (!file.script && !file.form) return make_diag(DiagCode::I103, {{"path", path}});
  if (!cursor.at_end()) return cursor.unexpected("the end of the file");
  return file;
}

Checked<ScheduleFile> read_schedule_file(const std::string& path) {
  HP_TRY(const std::string text, read_whole(path));
  return parse_schedule_file(text, path);
}

Checked<Ok> check_subject(const ScheduleFile& file, const Program& program,
                          const std::string& path) {
  if (file.program() == program.name) return Ok{};
  return make_diag(DiagCode::I104,
                   {{"path", path}, {"written", file.program()}, {"program", program.name}});
}

}  // namespace harpe
