// A place whose content an attacker rearranges, and what must not be touched beside it.
#pragma once

#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <sys/stat.h>
#include <thread>

namespace pi_agent::test {

namespace fs = std::filesystem;

// "top", in which the attacker rearranges, and "outside", which nothing here may touch.
struct Place {
    Place() : top_path(directory.make("top"))
    {
        directory.make("outside/kept");
        directory.write("outside/canary", "alive");
        top = open_path(top_path, O_RDONLY | O_DIRECTORY);
    }
    [[nodiscard]] std::string operator/(const std::string &name) const { return top_path + "/" + name; }
    void link(const std::string &name, const std::string &target) const { fs::create_symlink(target, *this / name); }
    void write(const std::string &name, const std::string &text) const { std::ofstream(*this / name) << text; }
    void make(const std::string &name) const { fs::create_directories(*this / name); }
    [[nodiscard]] bool outside_is_unchanged() const
    {
        std::ifstream file(directory / "outside/canary");
        std::string text;
        file >> text;
        std::size_t entries = 0;
        for ([[maybe_unused]] const auto &entry : fs::recursive_directory_iterator(directory / "outside"))
            ++entries;
        return text == "alive" && entries == 2 && fs::is_directory(directory / "outside/kept");
    }

    TemporaryDirectory directory;
    std::string top_path;
    UniqueFd top;
};

// Root may do what modes forbid, so these tests look as somebody else.
inline std::string as_somebody(const std::function<std::string()> &task)
{
    return in_child([&] {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return std::string("set-up failed");
        return task();
    });
}

// Exchanges two names as fast as it can, until it goes.
class Swapper {
public:
    Swapper(FdRef directory, std::string left, std::string right)
        : thread_([this, directory, left = std::move(left), right = std::move(right)] {
              while (!stop_)
                  ::renameat2(directory.get(), left.c_str(), directory.get(), right.c_str(), RENAME_EXCHANGE);
          })
    {
    }
    Swapper(const Swapper &) = delete;
    Swapper &operator=(const Swapper &) = delete;
    ~Swapper()
    {
        stop_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

} // namespace pi_agent::test
