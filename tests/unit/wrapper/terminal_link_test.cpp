// The user's terminal and the session's pty tied together, without a session: wrapper/terminal_link.hpp, wrapper/terminal_link.hpp
#include "wrapper/terminal_link.hpp"

#include "support/descriptors.hpp"
#include "support/forked.hpp"

#include <chrono>
#include <cstring>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace terminal_link_test {

namespace {

struct Pty {
    UniqueFd master, slave;
    Pty()
    {
        int ends[2] = {-1, -1}; // NOLINT(modernize-avoid-c-arrays): openpty(3) takes addresses
        const winsize size{33, 101, 7, 9};
        REQUIRE(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size) == 0);
        master = UniqueFd::adopt(ends[0]);
        slave = UniqueFd::adopt(ends[1]);
    }
};

std::unique_ptr<SessionTerminal> master_of(const Pty &session)
{
    return std::make_unique<PtyMaster>(UniqueFd::adopt(::fcntl(session.master.get(), F_DUPFD_CLOEXEC, 3)));
}

termios settings_of(FdRef fd)
{
    termios settings{};
    if (::tcgetattr(fd.get(), &settings) != 0) throw std::runtime_error("no terminal");
    return settings;
}

bool same(const termios &left, const termios &right)
{
    return left.c_iflag == right.c_iflag && left.c_oflag == right.c_oflag && left.c_cflag == right.c_cflag &&
           left.c_lflag == right.c_lflag && std::memcmp(left.c_cc, right.c_cc, sizeof left.c_cc) == 0;
}

void expect(bool holds, const char *what)
{
    if (!holds) throw std::runtime_error(what);
}

std::string read_some(FdRef fd)
{
    pollfd entry{fd.get(), POLLIN, 0};
    std::string bytes(65536, '\0');
    const ssize_t count = ::poll(&entry, 1, 2000) > 0 ? ::read(fd.get(), bytes.data(), bytes.size()) : -1;
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
}

void serve_once(TerminalLink &link)
{
    std::vector<pollfd> waits = link.waits();
    expect(::poll(waits.data(), waits.size(), 2000) > 0, "nothing happens");
    link.serve(waits);
}

// In a session of its own whose terminal is `user`, with `user` as its standard descriptors.
std::string on_terminal(const Pty &user, const std::function<std::string()> &task)
{
    return in_child([&] {
        expect(::setsid() >= 0 && ::ioctl(user.slave.get(), TIOCSCTTY, 0) == 0, "no controlling terminal");
        for (int fd = 0; fd < 3; ++fd)
            expect(::dup2(user.slave.get(), fd) == fd, "no standard descriptor");
        return task();
    });
}

} // namespace

TEST_CASE("the session's terminal begins with the user's settings and size, and the user's becomes raw with the keyboard, until the end")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              termios odd = settings_of(user.slave);
              odd.c_cc[VERASE] = 8;
              expect(::tcsetattr(user.slave.get(), TCSANOW, &odd) == 0, "stty");
              {
                  std::optional<UserTerminal> terminal = UserTerminal::find();
                  expect(terminal && terminal->has_input() && terminal->is_own(), "the terminal was not found");
                  TerminalLink link(*terminal, master_of(session));
                  expect(settings_of(session.slave).c_cc[VERASE] == 8, "the settings were not copied");
                  winsize size{};
                  ::ioctl(session.slave.get(), TIOCGWINSZ, &size);
                  expect(size.ws_row == 33 && size.ws_col == 101 && size.ws_xpixel == 7 && size.ws_ypixel == 9, "the size was not copied");
                  expect(same(settings_of(user.slave), odd), "the terminal was changed before the agent asked");
                  link.give_keyboard();
                  expect((settings_of(user.slave).c_lflag & static_cast<tcflag_t>(ICANON | ISIG | ECHO)) == 0, "the terminal is not raw");
                  expect(settings_of(user.slave).c_oflag == odd.c_oflag, "others who write to the terminal find it changed");
              }
              return std::string(same(settings_of(user.slave), odd) ? "as before" : "changed");
          }) == "as before");
}

TEST_CASE("bytes go both ways, and at the end what the agent switched on is switched off")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              termios raw = settings_of(session.slave);
              ::cfmakeraw(&raw);
              std::optional<UserTerminal> terminal = UserTerminal::find();
              {
                  TerminalLink link(*terminal, master_of(session));
                  link.give_keyboard();
                  expect(::tcsetattr(session.slave.get(), TCSANOW, &raw) == 0, "stty");
                  expect(::write(user.master.get(), "\x03key", 4) == 4, "typing");
                  serve_once(link);
                  expect(read_some(session.slave) == "\x03key", "what was typed did not arrive");
                  expect(::write(session.slave.get(), "\x1b[?25lshown", 11) == 11, "writing");
                  serve_once(link);
                  expect(read_some(user.master) == "\x1b[?25lshown", "what was written did not arrive");
              }
              return read_some(user.master);
          }) == "\x1b[?25h");
}

TEST_CASE("after the agent's end, whoever still holds its end of the pty gets no key and cannot keep the terminal")
{
    const Pty user;
    const Pty session; // its slave stays open all the time, as somebody else's might
    CHECK(on_terminal(user, [&] {
              std::optional<UserTerminal> terminal = UserTerminal::find();
              TerminalLink link(*terminal, master_of(session));
              expect(::write(session.slave.get(), "last words", 10) == 10, "writing");
              link.give_keyboard();
              link.finish();
              expect(::write(user.master.get(), "password\r", 9) == 9, "typing");
              const Deadline deadline = in_seconds(5);
              while (!link.is_drained()) {
                  expect(Clock::now() < deadline, "the terminal is still kept");
                  std::vector<pollfd> waits = link.waits();
                  expect(::poll(waits.data(), waits.size(), 20) >= 0, "poll");
                  link.serve(waits);
              }
              pollfd typed{session.slave.get(), POLLIN, 0};
              expect(::poll(&typed, 1, 0) == 0, "what was typed went to the stranger");
              return read_some(user.master);
          }) == "last words");
}

TEST_CASE("after the agent's end, a terminal that is slow gets all that the agent wrote")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              termios raw = settings_of(session.slave);
              ::cfmakeraw(&raw);
              std::optional<UserTerminal> terminal = UserTerminal::find();
              TerminalLink link(*terminal, master_of(session));
              expect(::tcsetattr(session.slave.get(), TCSANOW, &raw) == 0, "stty");
              expect(::fcntl(session.slave.get(), F_SETFL, O_NONBLOCK) == 0, "not waiting");
              const auto serve = [&link] {
                  std::vector<pollfd> waits = link.waits();
                  ::poll(waits.data(), waits.size(), 20);
                  link.serve(waits);
              };
              const std::string piece(1024, 'x');
              std::size_t written = 0;
              for (int full = 0; full < 3;) { // every buffer on the way
                  const ssize_t count = ::write(session.slave.get(), piece.data(), piece.size());
                  if (count > 0)
                      written += static_cast<std::size_t>(count);
                  else
                      ++full;
                  serve();
              }
              link.finish();
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              std::size_t seen = 0;
              const auto read_shown = [&] {
                  pollfd entry{user.master.get(), POLLIN, 0};
                  const bool is_some = ::poll(&entry, 1, 20) > 0;
                  if (is_some) seen += read_some(user.master).size();
                  return is_some;
              };
              while (!link.is_drained()) {
                  read_shown();
                  serve();
              }
              while (read_shown()) {
              }
              return std::to_string(written - seen) + " bytes lost";
          }) == "0 bytes lost");
}

TEST_CASE("after the agent's end, somebody who goes on writing is not listened to for ever")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              std::optional<UserTerminal> terminal = UserTerminal::find();
              TerminalLink link(*terminal, master_of(session));
              expect(::fcntl(session.slave.get(), F_SETFL, O_NONBLOCK) == 0 && ::fcntl(user.master.get(), F_SETFL, O_NONBLOCK) == 0,
                     "nonblocking");
              link.finish();
              const Deadline deadline = in_seconds(20);
              const std::string much(4096, 'x');
              std::string shown(65536, ' ');
              while (!link.is_drained()) {
                  expect(Clock::now() < deadline, "still listening");
                  while (::write(session.slave.get(), much.data(), much.size()) > 0) {
                  }
                  std::vector<pollfd> waits = link.waits();
                  expect(::poll(waits.data(), waits.size(), 20) >= 0, "poll");
                  link.serve(waits);
                  while (::read(user.master.get(), shown.data(), shown.size()) > 0) {
                  }
              }
              return std::string("done");
          }) == "done");
}

TEST_CASE("what the agent writes is processed once: by the user's terminal, or by its own where it has changed that")
{
    const Pty user;
    const Pty session;
    constexpr const char *mark = ".";
    CHECK(on_terminal(user, [&] {
              std::optional<UserTerminal> terminal = UserTerminal::find();
              TerminalLink link(*terminal, master_of(session));
              // The kernel passes a write on in parts of its own choice: what is shown ends with a byte that no text has.
              const auto until_mark = [&](FdRef terminal_of_writer, const std::string &text, bool through_link) {
                  const std::string marked = text + mark;
                  expect(::write(terminal_of_writer.get(), marked.data(), marked.size()) == static_cast<ssize_t>(marked.size()), "writing");
                  std::string seen;
                  for (const Deadline deadline = in_seconds(20); !seen.ends_with(mark);) {
                      expect(Clock::now() < deadline, "less is shown than was written");
                      std::vector<pollfd> waits = link.waits();
                      waits.push_back({user.master.get(), POLLIN, 0});
                      expect(::poll(waits.data(), waits.size(), 1000) >= 0, "poll");
                      if (waits.back().revents != 0) seen += read_some(user.master);
                      waits.pop_back();
                      if (through_link) link.serve(waits);
                  }
                  return seen;
              };
              const auto shown = [&](const std::string &text) { return until_mark(session.slave, text, true); };
              for (const bool has_keyboard : {false, true}) {
                  if (has_keyboard) link.give_keyboard();
                  for (const std::string text : {"\n", "a\n", "a\n\nb\n", "a\r\nb", "\r\r\n", "50 %\r", "\n", "a"}) {
                      const std::string alone = until_mark(user.slave, text, false);
                      expect(shown(text) == alone, "it was shown otherwise than that of the agent alone");
                  }
              }
              termios raw = settings_of(session.slave);
              ::cfmakeraw(&raw);
              expect(::tcsetattr(session.slave.get(), TCSANOW, &raw) == 0, "stty");
              return shown("a\nb\r\nc\r\r\n");
          }) == "a\nb\r\nc\r\r\n.");
}

TEST_CASE("what is typed before the agent asks for the keyboard is left for the shell")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              {
                  std::optional<UserTerminal> terminal = UserTerminal::find();
                  TerminalLink link(*terminal, master_of(session));
                  expect(::write(user.master.get(), "ls\n", 3) == 3, "typing");
                  expect(::write(session.slave.get(), "said", 4) == 4, "writing");
                  serve_once(link);
                  expect(!link.has_keyboard() && !link.keyboard_was_taken(), "it was asked for");
                  termios silent = settings_of(session.slave);
                  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
                  expect(::tcsetattr(session.slave.get(), TCSANOW, &silent) == 0 && link.keyboard_was_taken(), "a change is not noticed");
              }
              return read_some(user.slave);
          }) == "ls\n");
}

TEST_CASE("of two that have one terminal raw, the last gives it back as the first found it")
{
    const Pty user;
    const Pty session;
    CHECK(on_terminal(user, [&] {
              const termios before = settings_of(user.slave);
              std::optional<UserTerminal> first = UserTerminal::find();
              first->make_raw();
              const std::string second = in_child([&] { // locks are a process's
                  std::optional<UserTerminal> terminal = UserTerminal::find();
                  expect(same(terminal->settings(), before), "the shell's settings are not known");
                  terminal->make_raw();
                  terminal.reset();
                  return std::string((settings_of(user.slave).c_lflag & static_cast<tcflag_t>(ICANON)) == 0 ? "raw" : "restored");
              });
              first.reset();
              return second + ", then " + (same(settings_of(user.slave), before) ? "as before" : "changed");
          }) == "raw, then as before");
}

TEST_CASE("somebody else's lock on the whole terminal keeps nobody waiting")
{
    const Pty user;
    CHECK(on_terminal(user, [&] {
              std::array<int, 2> ready{};
              expect(::pipe(ready.data()) == 0, "no pipe");
              const pid_t other = ::fork();
              if (other == 0) {
                  ::setpgid(0, 0);
                  struct flock all {};
                  all.l_type = F_RDLCK;
                  all.l_whence = SEEK_SET;
                  const bool has_it = ::fcntl(user.slave.get(), F_SETLK, &all) == 0;
                  if (::write(ready[1], has_it ? "y" : "n", 1) == 1) ::pause();
                  ::_exit(0);
              }
              char has_it = 0;
              expect(::read(ready[0], &has_it, 1) == 1 && has_it == 'y', "no lock");
              std::optional<UserTerminal> terminal = UserTerminal::find();
              ::alarm(5); // of one that looks for ever
              terminal->make_raw();
              ::alarm(0);
              ::kill(other, SIGKILL);
              ::waitpid(other, nullptr, 0);
              return std::string(terminal->is_raw() ? "raw" : "not raw");
          }) == "raw");
}

TEST_CASE("two different terminals are refused with what to do")
{
    const Pty user;
    const Pty other;
    const std::string said = on_terminal(user, [&] {
        ::dup2(other.slave.get(), 2);
        return std::string(UserTerminal::find() ? "accepted" : "none");
    });
    CHECK(said.find("different terminals") != std::string::npos);
}

TEST_CASE("without a terminal there is none")
{
    CHECK(in_child([] {
              const UniqueFd null = open_path("/dev/null", O_RDWR);
              for (int fd = 0; fd < 3; ++fd)
                  ::dup2(null.get(), fd);
              return std::string(UserTerminal::find() ? "found" : "none");
          }) == "none");
}

} // namespace terminal_link_test
