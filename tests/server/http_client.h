#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>

namespace orthrus {

struct ClientAnswer {
  int status = 0;  ///< 0: the connection ended before an answer
  std::map<std::string, std::string> headers;
  std::string body;
  bool whole = false;
};

/// A client that sends any bytes and can misbehave in any way.
class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_GE(fd_, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False where the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  void shut_down_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Ends with a reset.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }

  /// More bytes, or "" at the end, after a reset, or where none come for `seconds`.
  std::string read_some(double seconds = 10) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return "";
    char buffer[65536];
    const ssize_t n = ::recv(fd_, buffer, sizeof(buffer), 0);
    return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
  }
  /// Whether the server ends the connection within `seconds`.
  bool ends(double seconds = 10) {
    pollfd wait{fd_, POLLIN, 0};
    while (::poll(&wait, 1, static_cast<int>(seconds * 1000)) > 0) {
      char buffer[65536];
      if (::recv(fd_, buffer, sizeof(buffer), 0) <= 0) return true;
    }
    return false;
  }
  /// Reads until `text` has come; false where it does not come.
  bool read_until(std::string_view text) {
    while (input_.find(text) == std::string::npos) {
      if (!fill()) return false;
    }
    return true;
  }
  const std::string& input() const { return input_; }

  /// The next answer. `head`: of a HEAD request, without a body.
  ClientAnswer read_answer(bool head = false) {
    ClientAnswer answer;
    size_t end;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return answer;
    }
    parse_head(input_.substr(0, end + 2), answer);
    input_.erase(0, end + 4);
    if (head || answer.status == 204 || answer.status < 200) {
      answer.whole = true;
    } else if (answer.headers.count("content-length")) {
      const size_t size = std::stoul(answer.headers["content-length"]);
      while (input_.size() < size && fill()) {
      }
      answer.whole = input_.size() >= size;
      answer.body = input_.substr(0, size);
      input_.erase(0, size);
    } else if (answer.headers.count("transfer-encoding")) {
      read_chunks(answer);
    } else {
      while (fill()) {
      }
      answer.whole = true;
      answer.body.swap(input_);
    }
    return answer;
  }

  ClientAnswer ask(std::string_view bytes) {
    send(bytes);
    return read_answer();
  }

 private:
  bool fill() {
    const std::string more = read_some();
    input_ += more;
    return !more.empty();
  }

  static void parse_head(const std::string& head, ClientAnswer& answer) {
    EXPECT_EQ(head.substr(0, 9), "HTTP/1.1 ");
    answer.status = std::atoi(head.c_str() + 9);
    for (size_t line = head.find("\r\n") + 2; line < head.size();) {
      const size_t stop = head.find("\r\n", line);
      const size_t colon = head.find(": ", line);
      answer.headers[head.substr(line, colon - line)] = head.substr(colon + 2, stop - colon - 2);
      line = stop + 2;
    }
  }

  void read_chunks(ClientAnswer& answer) {
    while (true) {
      size_t line;
      while ((line = input_.find("\r\n")) == std::string::npos) {
        if (!fill()) return;
      }
      const size_t size = std::stoul(input_, nullptr, 16);
      while (input_.size() < line + 2 + size + 2) {
        if (!fill()) return;
      }
      answer.body += input_.substr(line + 2, size);
      input_.erase(0, line + 2 + size + 2);
      if (size == 0) {
        answer.whole = true;
        return;
      }
    }
  }

  int fd_;
  std::string input_;
};

/// Whether `condition` comes true within ten seconds.
template <typename Condition>
bool eventually(Condition&& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace orthrus
