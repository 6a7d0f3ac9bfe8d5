#include "extension/call.h"

#include <chrono>

namespace harpe::python {

nb::object to_exception(const Error& error) {
  const char* name = "Refused";
  if (error.kind == ErrorKind::Fault) name = "Fault";
  if (error.kind == ErrorKind::Bug) name = "Bug";
  return nb::module_::import_("harpe._errors")
      .attr(name)(error.text, error.code, error.message, error.notes, error.remedy,
                  error.reproduction);
}

void raise(const Error& error) {
  const nb::object exception = to_exception(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

Options Callbacks::options() {
  Options options{.cache = given_->cache};
  if (given_->patience_s) options.patience = std::chrono::seconds(*given_->patience_s);
  options.progress = [this](std::string_view stage, std::int64_t done, std::int64_t of) {
    return report(stage, done, of);
  };
  options.warn = [this](const std::string& text) { warnings_.push_back(text); };
  return options;
}

bool Callbacks::report(std::string_view stage, std::int64_t done, std::int64_t of) {
  const nb::gil_scoped_acquire held;
  if (raised_) return false;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (given_->progress.is_none()) return true;
    const nb::object answer = given_->progress(nb::str(stage.data(), stage.size()), done, of);
    return !answer.is(nb::handle(Py_False));
  } catch (...) {
    raised_ = std::current_exception();
    return false;
  }
}

void Callbacks::finish() {
  if (raised_) std::rethrow_exception(raised_);
  for (const std::string& warning : warnings_) {
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 2) != 0) throw nb::python_error();
  }
}

}  // namespace harpe::python
