#include "tests/support/hosts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

namespace harpe::test {
namespace {

constexpr const char* kNetwork = "10.77.0.";
constexpr int kPacket = 9'000;  // fewer, larger packets: the wire is one thread
constexpr int kQueue = 10'000;  // packets a device holds; TCP resends a dropped one after 200 ms

ifreq request(const char* device) {
  ifreq asked{};
  std::strncpy(asked.ifr_name, device, IFNAMSIZ - 1);
  return asked;
}

bool set_address(int control, unsigned long call, const std::string& address) {
  ifreq asked = request(kHostInterface);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &place.sin_addr);
  std::memcpy(&asked.ifr_addr, &place, sizeof(place));
  return ::ioctl(control, call, &asked) == 0;
}

bool bring_up(int control, const char* device) {
  ifreq asked = request(device);
  if (::ioctl(control, SIOCGIFFLAGS, &asked) != 0) return false;
  asked.ifr_flags = static_cast<short>(asked.ifr_flags | IFF_UP | IFF_RUNNING);
  return ::ioctl(control, SIOCSIFFLAGS, &asked) == 0;
}

// Makes a device in a new network namespace. Returns its file, or sets `failed` to the failed step.
int make_device(int host, std::string& failed) {
  const auto refuse = [&](const std::string& step) {
    failed = step + ": " + std::strerror(errno);
    return -1;
  };
  if (::unshare(CLONE_NEWNET) != 0) return refuse("unshare");
  const int device = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) return refuse("/dev/net/tun");
  ifreq asked = request(kHostInterface);
  asked.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (::ioctl(device, TUNSETIFF, &asked) != 0) return refuse("TUNSETIFF");
  const int control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq size = request(kHostInterface);
  size.ifr_mtu = kPacket;
  ifreq queue = request(kHostInterface);
  queue.ifr_qlen = kQueue;
  if (!set_address(control, SIOCSIFADDR, kNetwork + std::to_string(host + 1)) ||
      !set_address(control, SIOCSIFNETMASK, "255.255.255.0") ||
      ::ioctl(control, SIOCSIFMTU, &size) != 0 || ::ioctl(control, SIOCSIFTXQLEN, &queue) != 0 ||
      !bring_up(control, "lo") || !bring_up(control, kHostInterface)) {
    return refuse("setting up a device");
  }
  ::close(control);
  return device;
}

// Sends one message that carries an open file, or else a text.
void send_file(int socket, int file, const std::string& text) {
  char first = file >= 0 ? 'f' : 't';
  std::vector<iovec> parts = {{.iov_base = &first, .iov_len = 1}};
  std::string copy = text;
  if (!copy.empty()) parts.push_back({.iov_base = copy.data(), .iov_len = copy.size()});
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  }
  (void)!::sendmsg(socket, &message, 0);
}

int receive_file(int socket, std::string& failed) {
  std::vector<char> text(512);
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (size > 0 && text[0] == 'f' && header != nullptr) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof(int));
    return file;
  }
  failed =
      size > 1 ? std::string(text.data() + 1, static_cast<std::size_t>(size - 1)) : "a host ended";
  return -1;
}

struct Host {
  pid_t process = -1;
  int socket = -1;
};

Host start(int host, const std::function<int(int)>& main) {
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return {};
  const pid_t process = ::fork();
  if (process != 0) {
    ::close(pair[1]);
    return {.process = process, .socket = pair[0]};
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(pair[0]);
  std::string failed;
  const int device = make_device(host, failed);
  send_file(pair[1], device, failed);
  if (device < 0) std::_Exit(77);
  ::close(device);  // the wire has a copy
  char go = 0;
  if (::read(pair[1], &go, 1) != 1) std::_Exit(77);
  const int status = main(host);
  std::fflush(nullptr);
  std::_Exit(status);
}

// Waits for all hosts; kills the remaining ones after `limit`.
std::vector<int> collect(const std::vector<Host>& hosts, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<int> statuses(hosts.size(), -1);
  for (std::size_t left = hosts.size(); left > 0;) {
    for (std::size_t at = 0; at < hosts.size(); ++at) {
      int status = 0;
      if (statuses[at] >= 0 || ::waitpid(hosts[at].process, &status, WNOHANG) <= 0) continue;
      statuses[at] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      --left;
    }
    if (std::chrono::steady_clock::now() > end) {
      for (std::size_t at = 0; at < hosts.size(); ++at) {
        if (statuses[at] < 0) ::kill(hosts[at].process, SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return statuses;
}

}  // namespace

std::string host_address(int host, int port) {
  return kNetwork + std::to_string(host + 1) + ":" + std::to_string(port);
}

HostRun run_on_hosts(const HostOptions& options, const std::function<int(int)>& main,
                     const std::function<void(Wire&)>& meddle) {
  HostRun run;
  std::vector<Host> hosts;
  std::vector<int> devices;
  for (int host = 0; host < options.count; ++host) {
    hosts.push_back(start(host, main));
    std::string failed;
    const int device = receive_file(hosts.back().socket, failed);
    if (device < 0) {
      run.skip = "no test hosts here: " + failed;
      break;
    }
    devices.push_back(device);
  }
  Wire wire(devices, options.wire);
  std::atomic<bool> stop{false};
  {
    std::jthread carrier;
    std::jthread meddler;
    if (!run.skip) {
      carrier = std::jthread([&] { wire.run(stop); });
      for (const Host& host : hosts) (void)!::write(host.socket, "g", 1);
      if (meddle) meddler = std::jthread([&] { meddle(wire); });
    }
    for (const Host& host : hosts) {
      if (run.skip) ::close(host.socket);
    }
    run.statuses = collect(hosts, options.limit);
    if (meddler.joinable()) meddler.join();
    stop.store(true);
  }
  for (const Host& host : hosts) {
    if (!run.skip) ::close(host.socket);
  }
  return run;
}

}  // namespace harpe::test
