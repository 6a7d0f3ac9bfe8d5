#include "extension/rank.h"

#include <cstring>
#include <string>
#include <utility>

namespace harpe::python {
namespace {

Error make_error(const nb::python_error& raised) {
  const auto type = nb::cast<std::string>(raised.type().attr("__name__"));
  const auto text = nb::cast<std::string>(nb::str(raised.value()));
  Error error{
      .kind = ErrorKind::Fault, .code = "", .message = type, .notes = {}, .remedy = "", .text = ""};
  if (!text.empty()) error.message += ": " + text;
  error.text = "fault: " + error.message;
  return error;
}

}  // namespace

GivenExchange::GivenExchange(nb::object given)
    : given_(std::move(given)),
      rank_(nb::cast<int>(given_.attr("rank"))),
      ranks_(nb::cast<int>(given_.attr("ranks"))) {}

// A group's last reference may end on any thread, so the destructor takes the interpreter's lock.
GivenExchange::~GivenExchange() {
  const nb::gil_scoped_acquire held;
  given_.reset();
  raised_.reset();
}

Checked<std::vector<Exchange::Bytes>> GivenExchange::all_gather(const Bytes& own) {
  const nb::gil_scoped_acquire held;
  try {
    return ask(own);
  } catch (const nb::python_error& raised) {
    raised_ = nb::borrow(raised.value());
    return make_error(raised);
  }
}

std::vector<Exchange::Bytes> GivenExchange::ask(const Bytes& own) const {
  std::vector<Bytes> all;
  for (const nb::handle each : given_.attr("all_gather")(nb::bytes(own.data(), own.size()))) {
    const nb::object bytes = nb::steal(PyBytes_FromObject(each.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    const nb::bytes& given = nb::borrow<nb::bytes>(bytes);
    Bytes& blob = all.emplace_back(given.size());
    std::memcpy(blob.data(), given.c_str(), given.size());
  }
  return all;
}

nb::object GivenExchange::take_raised() { return std::exchange(raised_, nb::object()); }

std::function<void(std::string_view)> hold(nb::object function) {
  if (function.is_none()) return {};
  const std::shared_ptr<nb::object> held(new nb::object(std::move(function)), [](auto* object) {
    const nb::gil_scoped_acquire lock;
    delete object;
  });
  return [held](std::string_view text) {
    const nb::gil_scoped_acquire lock;
    try {
      (*held)(nb::str(text.data(), text.size()));
    } catch (nb::python_error& raised) {
      raised.discard_as_unraisable("progress of harpe.Group");
    }
  };
}

SignalWatch::~SignalWatch() {
  const nb::gil_scoped_acquire held;
  raised_.reset();
}

bool SignalWatch::goes_on() {
  constexpr std::chrono::milliseconds kBetween{50};
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kBetween) return true;
  looked_ = now;
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() == 0) return true;
  raised_ = nb::borrow(nb::python_error().value());
  return false;
}

nb::object take_raised(GivenExchange* given, SignalWatch& signals) {
  nb::object raised = signals.take_raised();
  if (!raised.is_valid() && given != nullptr) raised = given->take_raised();
  return raised;
}

void raise(const Error& error, const nb::object& raised) {
  if (!raised.is_valid()) raise(error);
  if (PyErr_GivenExceptionMatches(raised.ptr(), PyExc_Exception) == 0) {
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
    throw nb::python_error();
  }
  const nb::object exception = to_exception(error);
  PyException_SetCause(exception.ptr(), raised.inc_ref().ptr());
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace harpe::python
