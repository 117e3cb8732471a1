// A directory that lives as long as the object.
#pragma once

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace pi_agent::test {

// Where project roots may lie: the policy refuses those in /tmp. Root has /srv, others only their own home.
inline std::string place_for_projects()
{
    const char *home = std::getenv("HOME");
    return ::access("/srv", W_OK) == 0 || home == nullptr ? "/srv" : home;
}

class TemporaryDirectory {
public:
    // Below `parent`, which the default makes a place that everybody can write to.
    explicit TemporaryDirectory(const std::string &parent = "/tmp") : path_(parent + "/pi-agent-unit-XXXXXX")
    {
        REQUIRE(::mkdtemp(path_.data()) != nullptr);
    }
    ~TemporaryDirectory()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory &) = delete;
    TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] std::string operator/(const std::string &name) const { return path_ + "/" + name; }

    // Makes the directory `name` and those above it.
    std::string make(const std::string &name) const
    {
        std::filesystem::create_directories(*this / name);
        return *this / name;
    }
    std::string write(const std::string &name, const std::string &text) const
    {
        std::ofstream(*this / name, std::ios::binary) << text;
        return *this / name;
    }
    std::string link(const std::string &name, const std::string &target) const
    {
        std::filesystem::create_symlink(target, *this / name);
        return *this / name;
    }

private:
    std::string path_;
};

} // namespace pi_agent::test
